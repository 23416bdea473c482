"""``%%cuda_from``: a reference and an intent in, a generated kernel in the namespace."""

from __future__ import annotations

from typing import Any

from IPython.core.magic import Magics, line_cell_magic, magics_class, no_var_expand

from llmkernel.config import get_config
from llmkernel.errors import UsageError
from llmkernel.magics.declaring import declare
from llmkernel.magics.notebook import notebook_path
from llmkernel.magics.parsing import shown
from llmkernel.magics.secrets import refuse_secrets

_USAGE = "%%cuda_from REFERENCE [options]\n    what the kernel should do, in your own words"


@magics_class
class CudaFromMagics(Magics):  # type: ignore[misc]
    """Holds ``%%cuda_from``."""

    @declare("cuda_from", _USAGE, "llmkernel.magics.options:CUDA_FROM_ARGUMENTS")
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
            raise UsageError(
                "%cuda_from takes the cell below its line: it is written with two percent signs."
                if cell is None
                else "The cell does not say what the kernel should do.",
                rule="usage: %%cuda_from REFERENCE [options], and below it what matters, in your own words",
                received=shown(line) or None,
                next_step="Write a sentence below the line. %%cuda_from? explains the options.",
            )
        from llmkernel.magics.job import make_job
        from llmkernel.magics.options import CudaFromOptions, parse_options

        config = get_config(self.shell)
        options = parse_options(CudaFromOptions, self.cuda_from, line, config)
        refuse_secrets(f"{line}\n{cell}")
        job = make_job(self.shell, options, options.reference, config)
        arguments = {
            **job.arguments,
            "provider": options.provider,
            "model": options.model,
            "effort": options.effort,
            "attempts": options.attempts,
            "max_tokens": options.max_tokens,
            "target": options.target,
            "replay": options.replay,
            "notebook": notebook_path(self.shell),
            "timeout": options.timeout,
            "budget_usd": config.budget_usd,
            "config": config,
        }
        if options.show_prompt:
            _show_prompt(job.reference, cell, arguments)
            return
        from llmkernel.magics.output import CellOutput
        from llmkernel.synthesis.synthesize import synthesize

        with CellOutput(options.name, quiet=options.quiet, live=options.live) as output:
            kernel = synthesize(job.reference, cell, **arguments, on_event=output)
            output.finish(kernel)
        self.shell.push({options.name: kernel})


def _show_prompt(reference: Any, intent: str, arguments: dict[str, Any]) -> None:
    from llmkernel.providers.registry import get_provider
    from llmkernel.synthesis.synthesize import preview

    request = preview(reference, intent, **arguments)
    provider = get_provider(arguments["provider"], model=arguments["model"], config=arguments["config"])
    tokens = provider.count_tokens(request)
    size = "nothing would be sent" if provider.is_offline else f"about {tokens:,} tokens, not sent"
    print(f"{provider.describe(request)}: {size}")  # noqa: T201 - the cell's output
    parts = [("system", request.system), *((message.role, message.text) for message in request.messages)]
    for role, text in parts:
        print(f"── {role}, {len(text):,} characters " + "─" * 40)  # noqa: T201
        print(text)  # noqa: T201
