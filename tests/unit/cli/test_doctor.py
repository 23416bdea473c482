from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from llmkernel.cli import doctor_checks as checks
from llmkernel.cli.doctor_probe import PROBES
from llmkernel.cli.main import main
from tests.unit.unprivileged import open_directory, run_unprivileged

GPU = {"name": "NVIDIA H200", "capability": [9, 0], "memory_bytes": 141 << 30}
NVRTC = {"found": {"version": [13, 0], "architectures": [75, 80, 90], "headers": ["/include"]}}
MISSING = {"error": "ModuleNotFoundError: No module named 'torch'"}


def gpu_findings(driver, *, nvrtc=NVRTC, cupy=MISSING):
    found = checks.check_gpu({"driver": driver, "nvrtc": nvrtc, "cupy": cupy, "torch": MISSING})
    return {finding.name: finding for finding in found}


@pytest.fixture
def shadow(tmp_path, monkeypatch):
    """Put a module in front of an installed one, for the probes' processes only."""

    def write(name, source):
        (tmp_path / f"{name}.py").write_text(source)
        monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")

    return write


def test_a_library_that_crashes_its_process_is_a_finding(shadow):
    shadow("torch", "import os; os.abort()")

    answer = checks.run_probe("torch")

    assert answer == {"error": "the process ended with signal 6"}
    assert gpu_findings({"found": {"is_found": False}})["PyTorch"].verdict == "optional"
    found = checks.check_gpu(
        {"driver": {"found": {"is_found": False}}, "nvrtc": NVRTC, "cupy": MISSING, "torch": answer}
    )
    assert {f.name: f.verdict for f in found}["PyTorch"] == "problem"


def test_a_library_that_hangs_is_a_finding(shadow):
    shadow("cupy", "import threading; threading.Event().wait()")

    assert checks.run_probe("cupy", timeout=1.0) == {"error": "no answer within 1 s"}


def test_a_library_that_cannot_be_imported_is_a_finding(shadow):
    shadow("cupy", "raise ImportError('libcuda.so.1: cannot open')")

    assert checks.run_probe("cupy") == {"error": "ImportError: libcuda.so.1: cannot open"}


def test_what_libraries_print_does_not_disturb(shadow):
    shadow(
        "cupy",
        "print('{banner}')\n__version__ = '1'\nclass cuda:\n    get_local_runtime_version = lambda: 13000",
    )

    assert checks.run_probe("cupy") == {"found": {"version": "1", "cuda": "13.0"}}


def test_every_probe_answers_here():
    answers = checks.run_probes(tuple(n for n in PROBES if n not in ("torch", "cupy")))

    assert answers["driver"]["found"]["is_found"] in (True, False)
    assert set(answers["keys"]["found"]) >= {"claude", "codex"}
    assert set(answers["devices"]["found"]) == {"cuda", "cpu"}


def test_drivers_and_gpus():
    none = gpu_findings({"found": {"is_found": False}})["NVIDIA driver"]
    lost = gpu_findings({"found": {"is_found": True, "error": "CUDA_ERROR_NO_DEVICE"}})["NVIDIA driver"]
    crash = gpu_findings({"error": "the process ended with signal 11"})["NVIDIA driver"]
    good = gpu_findings({"found": {"is_found": True, "version": [13, 0], "gpus": [GPU]}})

    assert (none.verdict, lost.verdict, crash.verdict) == ("optional", "problem", "problem")
    assert "CUDA_VISIBLE_DEVICES" in lost.next_step
    assert "signal 11" in crash.summary
    assert good["NVIDIA driver"].verdict == good["GPU"].verdict == "ok"
    assert good["GPU"].summary == "NVIDIA H200, sm_90, 141 GiB"
    assert good["CuPy"].verdict == "problem"  # with a GPU it is needed


@pytest.mark.parametrize(
    ("capability", "verdict", "step"), [([6, 1], "problem", "CUDA 12"), ([12, 1], "optional", "update")]
)
def test_a_gpu_that_nvrtc_does_not_know(capability, verdict, step):
    driver = {"found": {"is_found": True, "version": [13, 0], "gpus": [{**GPU, "capability": capability}]}}

    finding = gpu_findings(driver)["GPU"]

    assert finding.verdict == verdict
    assert step in finding.next_step


def test_one_usable_device_is_enough():
    answer = {
        "found": {
            "cuda": {"reason": "No driver was found: install one."},
            "cpu": {"reason": None, "versions": {}},
        }
    }

    findings, usable = checks.check_devices(answer)

    assert usable == ["cpu"]
    assert [(f.name, f.verdict, f.next_step) for f in findings] == [
        ("device cuda", "optional", "Install one."),
        ("device cpu", "ok", ""),
    ]
    answer["found"]["cpu"]["reason"] = "No compiler was found: install one."
    findings, usable = checks.check_devices(answer)
    assert usable == []
    assert {f.verdict for f in findings} == {"problem"}


def test_the_command_prints_json_and_never_a_key(capsys, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-0123456789abcdef0123")

    status = main(["doctor", "--json"])

    text = capsys.readouterr().out
    data = json.loads(text)
    findings = {f["name"]: f for f in data["findings"]}
    assert status == (0 if data["devices"] else 1)
    assert findings["key claude"]["summary"] == "from $ANTHROPIC_API_KEY"
    assert "0123456789abcdef" not in text
    assert all(f["verdict"] in ("ok", "optional", "problem") for f in data["findings"])
    assert all(f["next_step"] for f in data["findings"] if f["verdict"] == "problem")


def test_the_table_names_every_finding_and_says_whether_the_main_job_runs(capsys, monkeypatch):
    findings = [checks.Finding("NVRTC", "optional", "not installed", "pip install it.")]
    monkeypatch.setattr("llmkernel.cli.doctor.examine", lambda: (findings, []))

    assert main(["doctor"]) == 1
    text = capsys.readouterr().out
    assert "NVRTC" in text
    assert "pip install it." in text
    assert "No device" in text

    monkeypatch.setattr("llmkernel.cli.doctor.examine", lambda: (findings, ["cpu"]))
    assert main(["doctor"]) == 0
    assert "on: cpu." in capsys.readouterr().out


def test_heavy_libraries_stay_out_of_the_process():
    code = "import sys; from llmkernel.cli.doctor import examine; examine(); "
    code += "print({'torch', 'cupy'} & {*sys.modules})"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "set()"


def test_a_kernelspec_of_another_python_is_pointed_out(tmp_path, monkeypatch):
    directory = tmp_path / "kernels" / "llm-cuda"
    directory.mkdir(parents=True)
    (directory / "kernel.json").write_text(json.dumps({"argv": ["/opt/other/python", "-m", "llmkernel"]}))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path))

    findings = {f.name: f for f in checks.check_jupyter()}

    assert findings["kernelspec"].verdict == "optional"
    assert "/opt/other/python" in findings["kernelspec"].summary


def test_a_directory_that_cannot_be_written_is_a_problem(monkeypatch):
    def look():
        finding = {f.name: f for f in checks.check_directories()}["cache directory"]
        assert finding.verdict == "problem"
        assert "LLMKERNEL_CACHE_DIR" in finding.next_step

    with open_directory() as directory:
        directory.chmod(0o555)
        monkeypatch.setenv("LLMKERNEL_CACHE_DIR", str(directory / "cache"))
        run_unprivileged(look)


def test_directories_that_do_not_exist_yet_are_no_problem(tmp_path, monkeypatch):
    monkeypatch.setenv("LLMKERNEL_CACHE_DIR", str(tmp_path / "a" / "b"))
    monkeypatch.chdir(tmp_path)

    assert {f.name: f.verdict for f in checks.check_directories()}["cache directory"] == "ok"
    assert list(tmp_path.iterdir()) == []
