"""``%%cuda_from``: a reference and an intent in, a generated kernel in the namespace."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from IPython.core.magic import Magics, line_cell_magic, magics_class, no_var_expand

from llmkernel.config import get_config
from llmkernel.errors import UsageError
from llmkernel.magics.namespace import collect_inputs, resolve_callable
from llmkernel.magics.notebook import notebook_directory, notebook_path
from llmkernel.magics.options import USAGE, CudaFromOptions, cuda_from_arguments, parse_options


@magics_class
class CudaFromMagics(Magics):  # type: ignore[misc]
    """Holds ``%%cuda_from``."""

    @cuda_from_arguments
    @no_var_expand  # type: ignore[untyped-decorator]
    @line_cell_magic  # type: ignore[untyped-decorator]
    def cuda_from(self, line: str, cell: str | None = None) -> None:
        """Ask for a CUDA kernel that computes what REFERENCE computes.

        The text below the line says what matters: sizes, precision, what to fuse. It is sent as it stands.
        The candidate that comes back is compiled, proved against REFERENCE and timed; once accepted it is
        a callable in the notebook, kept in kernels/ beside it. Defaults are configuration: %config LLMKernel.

            %%cuda_from softmax --attempts 3
            One row a block; rows are up to 4096 long.
        """
        if cell is None or not cell.strip():
            raise UsageError(f"usage: {USAGE}", next_step="%%cuda_from? explains the options.")
        config = get_config(self.shell)
        options = parse_options(self.cuda_from, line, config)
        namespace = self.shell.user_ns
        reference = resolve_callable(namespace, options.reference, "reference")
        inputs = collect_inputs(namespace, reference, options.reference, options.inputs)
        baselines = {name: resolve_callable(namespace, name, "baseline") for name in options.baseline}
        _check_name(options, inputs)
        call = {
            "inputs": inputs,
            "name": options.name,
            "provider": options.provider,
            "model": options.model,
            "effort": options.effort,
            "device": options.device,
            "arch": options.arch,
            "attempts": options.attempts,
            "max_tokens": options.max_tokens,
            "target": options.target,
            "tolerance": options.tolerance,
            "shapes": options.shapes,
            "baselines": baselines or None,
            "replay": options.replay,
            "records_dir": notebook_directory(self.shell) / Path(config.records_dir).expanduser(),
            "notebook": notebook_path(self.shell),
            "timeout": options.timeout,
            "budget_usd": config.budget_usd,
            "config": config,
        }
        if options.show_prompt:
            _show_prompt(reference, cell, call)
            return
        kernel = _synthesize(reference, cell, call, quiet=options.quiet)
        self.shell.push({options.name: kernel})


def _check_name(options: CudaFromOptions, inputs: dict[str, Any]) -> None:
    used = {options.reference.partition(".")[0], *inputs, *(b.partition(".")[0] for b in options.baseline)}
    if options.name in used:
        raise UsageError(
            f"--name {options.name} would replace what this cell reads.",
            rule="The generated kernel has a name of its own, so that the cell can run again.",
            received=options.name,
            next_step=f"Leave --name out for {options.reference.rpartition('.')[2]}_cuda, or choose another.",
        )


def _show_prompt(reference: Any, intent: str, call: dict[str, Any]) -> None:
    from llmkernel.synthesis.synthesize import preview

    request = preview(reference, intent, **call)
    parts = [("system", request.system), *((message.role, message.text) for message in request.messages)]
    for role, text in parts:
        print(f"── {role}, {len(text):,} characters " + "─" * 40)  # noqa: T201 - the cell's output
        print(text)  # noqa: T201


def _synthesize(reference: Any, intent: str, call: dict[str, Any], *, quiet: bool) -> Any:
    from llmkernel.magics.output import CellOutput
    from llmkernel.synthesis.synthesize import synthesize

    with CellOutput(call["name"], quiet=quiet) as output:
        kernel = synthesize(reference, intent, **call, on_event=output)
        output.finish(kernel)
    return kernel
