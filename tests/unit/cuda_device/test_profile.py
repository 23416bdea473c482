"""Reading what ncu prints, and asking it; a program of its name stands for it here, the real one runs in tests/gpu."""

import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmkernel.devices.cuda import profile
from llmkernel.devices.cuda.profile import find_ncu, parse_csv, run_ncu
from llmkernel.devices.plan import Buffer, LaunchPlan

PLAN = LaunchPlan((Buffer("x", "float32", (2,), "input"), Buffer("y", "float32", (2,), "output")), (), ("y",))
LONG = "smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio"
BARRIER = "smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio"
HEADER = ["ID", "Process ID", "Kernel Name", profile.DURATION, profile.MEMORY, profile.COMPUTE]
HEADER += [profile.OCCUPANCY, profile.L2_HITS, LONG, BARRIER]
UNITS = ["", "", "", "ns", "%", "%", "%", "%", "inst", "inst"]


def table(*rows, units=UNITS):
    lines = [HEADER, units, *([str(i), "7", *map(str, row)] for i, row in enumerate(rows))]
    csv = "\n".join(",".join(f'"{cell}"' for cell in line) for line in lines)
    return f"==PROF== Connected to process 7\n==PROF== Profiling\n{csv}\n==PROF== Disconnected\n"


SPLIT = ("void split<float, 4>(const float *, float *, int)", "1,000", 40, 10, 50, "n/a", 2, 1)
SPLIT_AGAIN = ("void split<float, 4>(const float *, float *, int)", "3,000", 80, 10, 50, "n/a", 6, 1)
JOIN = ("join(float *)", "500", 5, 5, 5, 90, 0, 3)


def test_launches_of_one_kernel_count_by_their_time_and_the_longest_kernel_comes_first():
    first, second = parse_csv(table(JOIN, SPLIT, SPLIT_AGAIN))
    assert first.kernel.startswith("void split<float, 4>(")
    assert (first.launches, first.duration_ns) == (2, 4000)
    assert first.memory_percent == pytest.approx(70)
    assert first.l2_hit_percent is None
    assert first.stalls == (("long_scoreboard", 5.0), ("barrier", 1.0))
    assert (second.kernel, second.l2_hit_percent) == ("join(float *)", 90)
    assert second.stalls[0] == ("barrier", 3.0)


def test_times_are_read_in_their_unit():
    (found,) = parse_csv(table(JOIN, units=["", "", "", "us", *UNITS[4:]]))
    assert found.duration_ns == 500_000


@given(st.text(max_size=300), st.integers(0, 400))
def test_any_text_is_read(text, cut):
    parse_csv(text)
    parse_csv('"ID"' + text)
    parse_csv(table(SPLIT, JOIN)[:cut] + text)
    parse_csv(table(("k", text.replace('"', ""), 1, 1, 1, 1, 1, 1)))


@pytest.fixture
def ncu(tmp_path, monkeypatch):
    """Put a program called ncu in the path that prints what the test wants, and keeps how it was called."""

    def install(prints):
        (tmp_path / "printed").write_text(prints, encoding="utf-8")
        program = tmp_path / "ncu"
        program.write_text(
            f"#!{sys.executable}\nimport json, os, pathlib, sys\n"
            f"here = pathlib.Path({str(tmp_path)!r})\n"
            "files = sorted(os.listdir(sys.argv[-1]))\n"
            "(here / 'called').write_text(json.dumps([sys.argv[1:], files, os.environ['TMPDIR']]))\n"
            "print((here / 'printed').read_text())\n",
            encoding="utf-8",
        )
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
        return tmp_path / "called"

    return install


def test_ncu_is_asked_for_the_marked_run_with_the_clocks_as_they_are(ncu):
    called = ncu(table(SPLIT))
    run = run_ncu("source", PLAN, {"x": np.zeros(8, np.uint8)})

    assert (len(run.kernels), run.problem) == (1, "")
    arguments, files, scratch = json.loads(called.read_text())
    assert files == ["job.json", "x.bin"]
    assert arguments[arguments.index("--clock-control") + 1] == "none"
    assert arguments[arguments.index("--profile-from-start") + 1] == "off"
    assert profile.MEMORY in arguments[arguments.index("--metrics") + 1]
    assert arguments[-2:] == ["llmkernel.devices.cuda.profile_run", scratch]
    assert not Path(scratch).exists()


@pytest.mark.parametrize(
    ("prints", "says"),
    [
        (
            "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access counters",
            "NVreg_Restrict",
        ),
        ("==PROF== Connected\n==ERROR== The application returned an error code (1).", "application returned"),
        ("==WARNING== No kernels were profiled.", "No kernels"),
        ("", "printed nothing"),
    ],
)
def test_why_there_are_no_counters_is_told(ncu, prints, says):
    ncu(prints)
    run = run_ncu("source", PLAN, {"x": np.zeros(8, np.uint8)})
    assert not run.kernels
    assert says in run.problem


def test_without_ncu_that_is_said(monkeypatch):
    monkeypatch.setattr(profile, "find_ncu", lambda: None)
    assert "not installed" in run_ncu("source", PLAN, {}).problem


def test_a_toolkits_folder_is_looked_into(tmp_path, monkeypatch):
    program = tmp_path / "bin" / "ncu"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    assert find_ncu() == str(program)
