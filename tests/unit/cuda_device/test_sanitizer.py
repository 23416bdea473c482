"""Reading the tools' logs; the tools themselves run in tests/gpu."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmkernel.devices.cuda.sanitizer import parse_log
from llmkernel.devices.plan import Buffer, LaunchPlan

PLAN = LaunchPlan(
    (Buffer("x", "float32", (1000,), "input"), Buffer("y", "float32", (1000,), "output")), (), ("y",)
)
BUFFERS = "llmkernel-buffer x 4096 4000\nllmkernel-buffer y 1048576 4000\n"

MEMCHECK = (
    BUFFERS
    + """========= COMPUTE-SANITIZER
========= Invalid __global__ write of size 4 bytes
=========     at axpy(float, const float *, const float *, float *, int)+0x120 in /llmkernel/kernel.cu:6
=========     by thread (104,0,0) in block (7,0,0)
=========     Access to 0x100fa0 is out of bounds
=========     and is 1 bytes after the nearest allocation at 0x100000 of size 4,000 bytes
=========     Saved host backtrace up to driver entry point at kernel launch time
========= ERROR SUMMARY: 1 error
"""
)
RACECHECK = """========= COMPUTE-SANITIZER
========= Error: Race reported between Write access at row_sum(const float *, float *, int)+0x1a0 in /llmkernel/kernel.cu:10
=========     and Read access at row_sum(const float *, float *, int)+0x200 in /llmkernel/kernel.cu:12 [40 hazards]
========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)
"""
INITCHECK = (
    BUFFERS
    + """========= Uninitialized __global__ memory read of size 4 bytes
=========     at add(const float *, float *, int)+0xd0 in /llmkernel/kernel.cu:5
=========     by thread (3,0,0) in block (0,0,0)
=========     Access to 0x10000c
========= ERROR SUMMARY: 1 error
"""
)
SYNCCHECK = """========= Barrier error detected. Divergent thread(s) in block.
=========     at f(float *)+0x90 in /llmkernel/kernel.cu:8
=========     by thread (32,0,0) in block (0,0,0)
========= ERROR SUMMARY: 1 error
"""


@pytest.mark.parametrize(
    ("log", "outcome", "line", "argument", "element"),
    [
        (MEMCHECK, "out_of_bounds", 6, "y", 1000),
        (RACECHECK, "data_race", 10, "", None),
        (INITCHECK, "uninitialised_read", 5, "y", 3),
        (SYNCCHECK, "invalid_synchronization", 8, "", None),
    ],
)
def test_a_tools_error_is_mapped_to_the_source(log, outcome, line, argument, element):
    (found,) = parse_log(log, PLAN)
    assert (found.outcome, found.line, found.argument, found.element) == (outcome, line, argument, element)
    assert f"line {line}" in found.message


def test_thread_and_block_are_read():
    (found,) = parse_log(MEMCHECK, PLAN)
    assert found.thread == (104, 0, 0)
    assert found.block == (7, 0, 0)
    assert found.kernel == "axpy"


WARNING = """========= COMPUTE-SANITIZER
========= Warning: Race reported between Read access at softmax(const float *, float *, int)+0x44 in /llmkernel/kernel.cu:16
=========     and Write access at softmax(const float *, float *, int)+0x6a0 in /llmkernel/kernel.cu:19 [496 hazards]
=========
========= RACECHECK SUMMARY: 1 hazard displayed (0 errors, 1 warning)
"""


def test_a_race_names_all_its_accesses_and_how_sure_the_tool_is():
    (found,) = parse_log(RACECHECK, PLAN)
    assert found.message == "Race between the write on line 10 and the read on line 12."
    assert (found.lines, found.is_warning) == ((10, 12), False)
    (found,) = parse_log(WARNING, PLAN)
    assert found.message == "Race between the read on line 16 and the write on line 19."
    assert (found.lines, found.is_warning) == ((16, 19), True)
    (found,) = parse_log(WARNING.replace("/llmkernel/kernel.cu:16", "/cuda/warp_exchange.cuh:153"), PLAN)
    assert found.lines == (), "one side is not the candidate's"
    assert "a read in a header" in found.message


def test_a_clean_log_has_no_findings():
    assert parse_log(BUFFERS + "========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n", PLAN) == ()


@given(st.text(max_size=400))
def test_any_text_is_read(text):
    parse_log(text, PLAN)
    parse_log("========= Invalid __global__ read of size 4 bytes\n" + text, PLAN)
