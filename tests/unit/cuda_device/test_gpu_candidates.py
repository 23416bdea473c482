"""The candidates of the GPU tests parse, plan and compile without a GPU."""

import pytest

from llmkernel.candidate.candidate import parse_candidate
from llmkernel.devices.cuda.nvrtc import check_with_nvrtc
from tests.gpu import candidates

SOURCES = {
    name: text
    for name, text in vars(candidates).items()
    if isinstance(text, str) and text.startswith("\n//!")
}


@pytest.mark.parametrize("name", SOURCES)
def test_it_compiles_for_the_gpu_that_it_needs(name):
    source = SOURCES[name].replace("COLUMNS", "128")
    candidate = parse_candidate(source)
    choices = candidate.signature.type_variables
    kernels = [
        kernel
        for dtype in (choices[0][1] if choices else ("",))
        for kernel in candidate.name_expressions({choices[0][0]: dtype} if choices else {})
    ]
    assert kernels
    check = check_with_nvrtc(source, tuple(dict.fromkeys(kernels)), "sm_90a")
    assert not [d for d in check.diagnostics if d.severity == "error"]
