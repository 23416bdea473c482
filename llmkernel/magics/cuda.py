"""``%%cuda``: a `.cu` file written by hand in the cell, through the same checks as one that a provider wrote."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from IPython.core.magic import Magics, line_cell_magic, magics_class, no_var_expand

from llmkernel.config import LLMKernel, get_config
from llmkernel.errors import CandidateError, UsageError
from llmkernel.magics.declaring import declare
from llmkernel.magics.namespace import is_kernel
from llmkernel.magics.parsing import shown

if TYPE_CHECKING:
    from llmkernel.magics.options import CudaOptions
    from llmkernel.problem.signature import Signature
    from llmkernel.synthesis.unverified_kernel import UnverifiedKernel

_USAGE = "%%cuda [NAME] [--from REFERENCE] [options]\n    a .cu file under its launch header"


@magics_class
class CudaMagics(Magics):  # type: ignore[misc]
    """Holds ``%%cuda``."""

    @declare("cuda", _USAGE, "llmkernel.magics.options:CUDA_ARGUMENTS")
    @no_var_expand  # type: ignore[untyped-decorator]
    @line_cell_magic  # type: ignore[untyped-decorator]
    def cuda(self, line: str, cell: str | None = None) -> None:
        """Take the cell as a CUDA kernel: a .cu file under a launch header.

        With --from it is judged as a provider's candidate is: compiled, proved against REFERENCE, timed. Once
        accepted it is a callable NAME, kept in kernels/ beside the notebook. Nobody is asked.

        Without --from it is compiled and run under the memory checks, on the variables that are called like the
        header's inputs. What comes of it can be called, and is *unverified* wherever it is shown.

            %%cuda double_cuda --from double
            //! double_cuda(x: float32[N]) -> y: float32[N]
            //! twice<<<ceil_div(N, 256), 256>>>(x, y, N)
            __global__ void twice(const float* x, float* y, int N)
            {
                int i = blockIdx.x * blockDim.x + threadIdx.x;
                if (i < N) y[i] = 2 * x[i];
            }
        """
        if cell is None or not cell.strip():
            raise UsageError(
                "%cuda takes the cell below its line: it is written with two percent signs."
                if cell is None
                else "The cell holds no source.",
                rule="usage: %%cuda [NAME] [--from REFERENCE] [options], and below it a .cu file",
                received=shown(line) or None,
                next_step="%%cuda? explains the options and shows a launch header.",
            )
        from llmkernel.magics.options import CudaOptions, parse_options

        config = get_config(self.shell)
        signature = _signature_of(cell)
        named = signature.name if signature is not None else "kernel"
        options = parse_options(
            CudaOptions, self.cuda, line, config, named if named.isidentifier() else "kernel"
        )
        if options.reference is None:
            self._unverified(cell, options, signature, config)
            return
        from llmkernel.magics.job import make_job
        from llmkernel.magics.output import CellOutput
        from llmkernel.synthesis.source import accept_source

        job = make_job(self.shell, options, options.reference, config)
        with CellOutput(options.name, quiet=options.quiet, live=options.live) as output:
            kernel = accept_source(cell, job.reference, **job.arguments, on_event=output)
            output.finish(kernel)
        self.shell.push({options.name: kernel})

    def _unverified(
        self, cell: str, options: CudaOptions, signature: Signature | None, config: LLMKernel
    ) -> None:
        from llmkernel.magics.job import make_unverified_job
        from llmkernel.magics.output import CellOutput
        from llmkernel.synthesis.unverified_source import accept_unverified

        arguments = make_unverified_job(self.shell, options, signature, config)
        with CellOutput(options.name, quiet=options.quiet, live=options.live) as output:
            kernel = accept_unverified(cell, **arguments, on_event=output)
            self._warn_of_replaced(kernel)
            output.finish(kernel)
        self.shell.push({options.name: kernel})

    def _warn_of_replaced(self, kernel: UnverifiedKernel) -> None:
        """Say in the report that a verified kernel loses its name to this one."""
        before = self.shell.user_ns.get(kernel.__name__)
        if is_kernel(before) and before.report.is_verified:
            what = f"It takes the name of a verified kernel. %kernels rollback {kernel.__name__} 1 puts that one back."
            kernel.report = replace(kernel.report, warnings=(*kernel.report.warnings, what))


def _signature_of(source: str) -> Signature | None:
    from llmkernel.candidate.header import parse_header

    try:
        return parse_header(source).signature
    except CandidateError:
        # What is wrong with it is in the report.
        return None
