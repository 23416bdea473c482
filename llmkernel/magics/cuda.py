"""``%%cuda``: a `.cu` file written by hand in the cell, through the same checks as one that a provider wrote."""

from __future__ import annotations

from IPython.core.magic import Magics, line_cell_magic, magics_class, no_var_expand

from llmkernel.config import get_config
from llmkernel.errors import UsageError
from llmkernel.magics.job import make_job
from llmkernel.magics.options import CUDA_ARGUMENTS, CudaOptions, declare, parse_options

_USAGE = "%%cuda NAME --from REFERENCE [options]\n    a .cu file under its launch header"


@magics_class
class CudaMagics(Magics):  # type: ignore[misc]
    """Holds ``%%cuda``."""

    @declare("cuda", _USAGE, CUDA_ARGUMENTS)
    @no_var_expand  # type: ignore[untyped-decorator]
    @line_cell_magic  # type: ignore[untyped-decorator]
    def cuda(self, line: str, cell: str | None = None) -> None:
        """Take the cell as a CUDA kernel that computes what REFERENCE computes.

        The body is a .cu file under a launch header. It is judged as a provider's candidate is: compiled,
        proved against REFERENCE, timed. Once accepted it is a callable NAME, kept in kernels/ beside the
        notebook. Nobody is asked.

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
                "usage: %%cuda NAME --from REFERENCE [options], and below it a .cu file",
                next_step="%%cuda? explains the options and shows a launch header.",
            )
        config = get_config(self.shell)
        options = parse_options(CudaOptions, self.cuda, line, config)
        job = make_job(self.shell, options, config)
        from llmkernel.magics.output import CellOutput
        from llmkernel.synthesis.source import accept_source

        with CellOutput(options.name, quiet=options.quiet) as output:
            kernel = accept_source(cell, job.reference, **job.arguments, on_event=output)
            output.finish(kernel)
        self.shell.push({options.name: kernel})
