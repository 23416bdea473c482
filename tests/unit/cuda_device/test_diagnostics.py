"""NVRTC's and ptxas's logs as data."""

from hypothesis import given
from hypothesis import strategies as st

from llmkernel.devices.base import Diagnostic, KernelResources
from llmkernel.devices.cuda.diagnostics import LOG_LIMIT, clean_log, parse_log, parse_resources

ERRORS = """\
/llmkernel/kernel.cu(12): warning #177-D: variable "q" was declared but never referenced
    int q;
        ^

Remark: The warnings can be suppressed with "-diag-suppress <warning-number>"

/llmkernel/kernel.cu(3): error: identifier "zz" is undefined
  \tx[1] = zz + "abc";
  \t       ^

/llmkernel/kernel.cu(1): error: expression must have class type but it has type "float"
  template<class T> __device__ T g(T a){ return a.foo; }
                                                ^
          detected during:
            instantiation of "T g(T) [with T=float]" at line 2
            instantiation of "void f(T *) [with T=float]" at line 9

2 errors detected in the compilation of "kernel.cu".
"""
PTXAS = """\
ptxas info    : 3 bytes gmem
ptxas info    : Compiling entry function '_Z1fILi200EEvPf' for 'sm_90a'
ptxas info    : Function properties for _Z1fILi200EEvPf
ptxas         .     816 bytes stack frame, 8 bytes spill stores, 4 bytes spill loads
ptxas info    : Used 32 registers, used 1 barriers, 816 bytes cumulative stack size, 800 bytes smem
ptxas info    : Compiling entry function 'g' for 'sm_90a'
ptxas info    : Function properties for g
ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 8 registers
ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized
 ptxas error   : Entry function '_Z1fPf' uses too much shared data (0x445c0 bytes, 0x38c00 max)
ptxas fatal   : Ptx assembly aborted due to errors
"""


def test_errors_come_first_with_line_and_column():
    found = parse_log(clean_log(ERRORS))
    assert [(d.severity, d.line, d.column) for d in found] == [
        ("error", 3, 9),
        ("error", 1, 47),
        ("warning", 12, 7),
    ]
    assert found[0].message == 'identifier "zz" is undefined'
    assert 'instantiation of "T g(T) [with T=float]"' in found[1].message


def test_resources_are_by_symbol():
    assert parse_resources(PTXAS) == {
        "_Z1fILi200EEvPf": KernelResources(
            registers=32, spill_bytes=12, local_bytes=816, static_shared_bytes=800
        ),
        "g": KernelResources(registers=8, spill_bytes=0, local_bytes=0, static_shared_bytes=0),
    }


def test_ptxas_speaks_without_lines():
    assert parse_log(PTXAS) == (
        Diagnostic(
            "error", 0, 0, "Entry function '_Z1fPf' uses too much shared data (0x445c0 bytes, 0x38c00 max)"
        ),
        Diagnostic(
            "warning", 0, 0, "Potential Performance Loss: wgmma.mma_async instructions are serialized"
        ),
    )


def test_an_error_inside_a_header_is_on_the_line_of_its_include():
    log = (
        "/usr/include/thrust/detail/copy.h(31): error: first\n    x\n    ^\n\n"
        "/usr/include/thrust/detail/copy.h(32): error: second\n    x\n    ^\n"
    )
    source = "#include <cuda_fp16.h>\n\n  #  include <thrust/sort.h>\n"
    (only,) = parse_log(clean_log(log, ("/usr/include",)), source)
    assert only.line == 3
    assert only.message.startswith("<thrust/sort.h> cannot be used")
    assert "first" in only.message


def test_an_error_inside_a_header_that_the_candidate_instantiates_is_on_its_line():
    log = (
        "cuda/std/foo.h(31): error: no member\n    x\n    ^\n          detected during:\n"
        '            instantiation of "void g()" at line 3 of "cuda/std/bar.h"\n'
        '            instantiation of "void f()" at line 17 of "kernel.cu"\n'
    )
    (only,) = parse_log(log)
    assert only.line == 17
    assert only.message.startswith("no member")
    assert only.message.endswith("(in cuda/std/foo.h)")


def test_cleaning_removes_colours_and_paths_and_caps_the_length():
    log = clean_log(
        "\x1b[31m/llmkernel/kernel.cu(1): error: bad\x1b[0m in /opt/cuda/include/cccl/cuda/y.h\0",
        ("/opt/cuda/include", "/opt/cuda/include/cccl"),
    )
    assert log.endswith("kernel.cu(1): error: bad in cuda/y.h")
    assert "\x1b" not in log
    assert len(clean_log("x" * (2 * LOG_LIMIT))) < LOG_LIMIT + 100


@given(st.text(max_size=400), st.text(max_size=200))
def test_any_text_is_a_log(log, source):
    for diagnostic in parse_log(clean_log(log), source):
        assert diagnostic.severity in ("error", "warning")
        assert diagnostic.line >= 0
        assert diagnostic.column >= 0
    parse_resources(log)


@given(
    st.integers(1, 10**6),
    st.sampled_from(["error", "warning #177-D", "catastrophic error", "error #20"]),
    st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=60),
    st.integers(0, 200),
)
def test_every_message_of_the_candidate_is_found(line, severity, message, column):
    log = f"/llmkernel/kernel.cu({line}): {severity}: {message}\n  source\n  {' ' * column}^\n"
    (only,) = parse_log(clean_log(log))
    assert only.line == line
    assert only.column == column + 1
    assert only.severity == ("error" if "error" in severity else "warning")
