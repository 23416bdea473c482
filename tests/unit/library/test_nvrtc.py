"""The real compiler, without a GPU, accepts every library kernel and keeps its registers in registers."""

from __future__ import annotations

import pytest

from llmkernel.candidate.arguments import ArrayArgument
from llmkernel.candidate.candidate import parse_candidate
from llmkernel.devices.base import DeviceLimits
from llmkernel.devices.cuda.nvrtc import compile_with_nvrtc
from llmkernel.errors import DeviceUnavailableError
from llmkernel.library.catalogue import entry, shipped_entries
from tests.unit.library.support import flat_source

# One entry a file: those of one file differ in an expression or a word only.
FILES = {e.file: e.name for e in reversed(shipped_entries())}
MAPS = (
    "gelu_erf",
    "gelu_tanh",
    "softplus",
    "mish",
    "absolute",
    "geglu_tanh",
)  # every device function that maps use
# Spilled bytes; float64 is not made for speed here.
MAX_SPILL = {"float32": 64, "float16": 256, "bfloat16": 256}
# Compiled with the others, launched for float32 alone.
NEVER_LAUNCHED = {"softmax_block<__nv_bfloat16, 1024, 8, 1>", "softmax_block<__nv_bfloat16, 256, 8, 4>"}


def compile_for(name: str, arch: str, *dtypes: str) -> None:
    e = entry(name)
    source = flat_source(e)
    candidate = parse_candidate(source)
    choices = e.signature.types["T"]
    for dtype in [d for d in dtypes if d in choices] or choices[:1]:
        kernels = candidate.name_expressions({"T": dtype})
        try:
            binary = compile_with_nvrtc(source, kernels, arch)
        except DeviceUnavailableError as error:
            pytest.skip(str(error))

        assert binary.code, (dtype, binary.log)
        assert set(binary.lowered) == set(kernels)
        for kernel, resources in binary.resources.items():
            if kernel in NEVER_LAUNCHED:
                continue
            assert (resources.spill_bytes or 0) <= MAX_SPILL.get(dtype, 10_000), (kernel, resources)


@pytest.mark.parametrize("file", FILES)
def test_every_file_on_hopper(file):
    compile_for(FILES[file], "sm_90a", "bfloat16")


def test_what_is_never_launched_is_compiled_and_not_launched():
    candidate = parse_candidate(flat_source(entry("softmax")))
    launched, all_kernels = set(), candidate.name_expressions({"T": "bfloat16"})
    for shared in (48, 227):
        limits = DeviceLimits("cuda", "GPU", "sm_90a", num_sms=132, max_shared_bytes=shared * 1024)
        for n in (1, 40, 200, 1000, 1500, 3000, 5000, 9000, 17000, 30000, 33000, 50257, 70000):
            launched |= set(candidate.plan([ArrayArgument("bfloat16", (3, n), None, 256)], limits).kernels())
    assert set(all_kernels) - launched == NEVER_LAUNCHED


@pytest.mark.parametrize("file", FILES)
def test_every_file_on_ampere(file):
    compile_for(FILES[file], "sm_80", "float64")


@pytest.mark.parametrize("name", MAPS)
def test_every_map(name):
    compile_for(name, "sm_90a", "float32")
