"""What ``llmkernel doctor`` looks at: each check turns what was probed into findings with a next step."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

Verdict = Literal["ok", "optional", "problem"]

_PROBE_SECONDS = 90
_NEEDED_BYTES = 2 << 30
_EXTRA = "pip install 'llmkernel[{}]'"


@dataclass(frozen=True)
class Finding:
    """One row of the table.

    Attributes
    ----------
    name : str
    verdict : str
        ``ok``, ``optional`` (absent, and the main job does without it) or ``problem``.
    summary : str
        What was found.
    next_step : str
        What to do about it; empty where there is nothing to do.
    """

    name: str
    verdict: Verdict
    summary: str
    next_step: str = ""


def run_probes(names: tuple[str, ...], *, timeout: float = _PROBE_SECONDS) -> dict[str, dict[str, Any]]:
    """Run probes, each in a process of its own, two at a time.

    Returns
    -------
    dict
        ``{"found": …}`` or ``{"error": sentence}`` by name.
    """
    with ThreadPoolExecutor(2) as pool:
        return dict(zip(names, pool.map(lambda name: run_probe(name, timeout=timeout), names), strict=True))


def run_probe(name: str, *, timeout: float = _PROBE_SECONDS) -> dict[str, Any]:
    """Run one probe; whatever happens to its process is an answer."""
    command = [sys.executable, "-m", "llmkernel.cli.doctor_probe", name]
    try:
        done = subprocess.run(
            command, capture_output=True, timeout=timeout, stdin=subprocess.DEVNULL, check=False
        )
    except subprocess.TimeoutExpired:
        return {"error": f"no answer within {timeout:.0f} s"}
    except OSError as error:
        return {"error": f"cannot be started: {error}"}
    try:
        answer = json.loads(done.stdout.decode(errors="replace").strip().splitlines()[-1])
        return answer if isinstance(answer, dict) else {"error": "no answer"}
    except (ValueError, IndexError):
        how = f"signal {-done.returncode}" if done.returncode < 0 else f"exit status {done.returncode}"
        return {"error": f"the process ended with {how}"}


def check_python() -> Iterator[Finding]:
    """Look at the interpreter and the platform."""
    yield Finding("Python", "ok", f"{platform.python_version()}, {sys.executable}")
    yield Finding("platform", "ok", f"{platform.platform()}, {platform.machine()}, {os.cpu_count()} CPUs")


def check_gpu(probed: Mapping[str, Mapping[str, Any]]) -> Iterator[Finding]:
    """Look at driver, GPUs, NVRTC, headers, CuPy and PyTorch; the `cpu` device needs none of them."""
    driver, nvrtc = probed["driver"], probed["nvrtc"].get("found", {})
    gpus: list[dict[str, Any]] = driver.get("found", {}).get("gpus", [])
    yield _driver(driver)
    for gpu in gpus:
        yield _gpu(gpu, nvrtc.get("architectures", []))
    if nvrtc.get("version"):
        archs = nvrtc["architectures"]
        span = f", sm_{archs[0]} to sm_{archs[-1]}" if archs else ""
        yield Finding("NVRTC", "ok", ".".join(map(str, nvrtc["version"])) + span)
    else:
        reason = probed["nvrtc"].get("error", "not installed")
        yield Finding("NVRTC", "optional", reason, f"For CUDA diagnostics and GPUs: {_EXTRA.format('cuda')}.")
    headers = nvrtc.get("headers", [])
    if headers:
        yield Finding("CUDA headers", "ok", ", ".join(headers))
    else:
        yield Finding("CUDA headers", "optional", "not found", f"{_EXTRA.format('cuda')}, or set CUDA_PATH.")
    yield _library("CuPy", probed["cupy"], f"For GPUs: {_EXTRA.format('cuda')}.", needed=bool(gpus))
    yield _library(
        "PyTorch", probed["torch"], "Only where references use it: pip install torch.", needed=False
    )


def _driver(answer: Mapping[str, Any]) -> Finding:
    name = "NVIDIA driver"
    found = answer.get("found", {})
    if "error" in answer:
        return Finding(
            name, "problem", f"asking it failed: {answer['error']}", "Reinstall the NVIDIA driver."
        )
    if not found["is_found"]:
        return Finding(
            name, "optional", "none", "With an NVIDIA GPU: install its driver. Without: nothing to do."
        )
    if "error" in found:
        steps = {
            "CUDA_ERROR_NO_DEVICE": "Check nvidia-smi and CUDA_VISIBLE_DEVICES.",
            "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH": "Restart the machine: library and kernel module differ.",
        }
        step = steps.get(found["error"], "Check nvidia-smi; in a container, start it with GPUs.")
        return Finding(name, "problem", f"it answers {found['error']}", step)
    version = ".".join(map(str, found["version"]))
    if not found["gpus"]:
        return Finding(
            name, "problem", f"CUDA {version}, no GPU", "Check nvidia-smi and CUDA_VISIBLE_DEVICES."
        )
    return Finding(name, "ok", f"CUDA {version}, {len(found['gpus'])} GPU(s)")


def _gpu(gpu: Mapping[str, Any], architectures: list[int]) -> Finding:
    major, minor = gpu["capability"]
    summary = f"{gpu['name']}, sm_{major}{minor}, {gpu['memory_bytes'] / 2**30:.0f} GiB"
    number = 10 * major + minor
    if architectures and number < min(architectures):
        step = f"NVRTC here begins at sm_{min(architectures)}: install that of CUDA 12."
        return Finding("GPU", "problem", summary, step)
    if architectures and number > max(architectures):
        step = f"Newer than NVRTC, which ends at sm_{max(architectures)}: update nvidia-cuda-nvrtc."
        return Finding("GPU", "optional", summary, step)
    return Finding("GPU", "ok", summary)


def _library(name: str, answer: Mapping[str, Any], step: str, *, needed: bool) -> Finding:
    if "error" in answer:
        is_missing = answer["error"].startswith("ModuleNotFoundError")
        summary = "not installed" if is_missing else answer["error"]
        return Finding(name, "problem" if needed or not is_missing else "optional", summary, step)
    found = answer["found"]
    return Finding(name, "ok", f"{found['version']}, CUDA {found['cuda'] or 'none'}")


def check_devices(answer: Mapping[str, Any]) -> tuple[list[Finding], list[str]]:
    """Return a finding for each device, and the names of those on which the main job can run."""
    if "error" in answer:
        step = "Install the package again; the line above is from its own devices."
        return [Finding("devices", "problem", answer["error"], step)], []
    usable = [name for name, device in answer["found"].items() if device["reason"] is None]
    findings = []
    for name, device in answer["found"].items():
        if device["reason"] is None:
            versions = ", ".join(f"{k} {v}" for k, v in sorted(device.get("versions", {}).items()))
            findings.append(Finding(f"device {name}", "ok", versions or "usable"))
        else:
            what, _, step = device["reason"].partition(": ")
            step = step[:1].upper() + step[1:]
            findings.append(Finding(f"device {name}", "optional" if usable else "problem", what, step))
    return findings, usable


def check_compilers(*, needed: bool) -> Iterator[Finding]:
    """Look for a C++ compiler for the `cpu` device, which is needed where no other device is."""
    found = []
    try:
        found.append(f"zig {importlib.metadata.version('ziglang')}")
    except importlib.metadata.PackageNotFoundError:
        pass
    found += [f"{name} at {path}" for name in ("clang++", "g++") if (path := shutil.which(name))]
    step = "" if found else f"For the cpu device: {_EXTRA.format('cpu')}."
    verdict: Verdict = "problem" if needed else "optional"
    yield Finding("C++ compiler", "ok" if found else verdict, ", ".join(found) or "none", step)


def check_sandbox(answer: Mapping[str, Any]) -> Iterator[Finding]:
    """Look at what confines the worker that runs candidates, and say what is missing."""
    stranger = "Judge candidates of strangers in a container or a virtual machine."
    found = answer.get("found")
    if found is None:
        yield Finding("sandbox", "problem", answer["error"], stranger)
        return
    if sys.platform != "linux":
        has_limits = sys.platform != "win32"
        parts = [
            "own session and rlimits" if has_limits else "own process",
            "no seccomp, no Landlock: only Linux has them",
        ]
        yield Finding("sandbox", "optional", ", ".join(parts), stranger)
        return
    why = found["why_no_landlock"]
    parts = [
        "rlimits",
        "seccomp" if found["has_seccomp"] else "no seccomp",
        f"no Landlock ({why})" if why else f"Landlock {found['landlock']}",
    ]
    if not found["has_seccomp"]:
        step = f"Allow seccomp filters in this container or kernel: the cpu device needs them. {stranger}"
        yield Finding("sandbox", "problem", ", ".join(parts), step)
    elif why:
        step = f"Files are not confined, the network is. {stranger}"
        yield Finding("sandbox", "optional", ", ".join(parts), step)
    else:
        yield Finding("sandbox", "ok", ", ".join(parts))


def check_redaction() -> Iterator[Finding]:
    """Look at what takes out secrets, beside the shapes that the package knows itself."""
    from llmkernel.prompts.detector import RULES, load_rules

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # it says what is said here
        missing = {rule.kind for rule in RULES} - {rule.kind for rule, _ in load_rules()}
    if missing:
        what = (
            "no rule of detect-secrets"
            if len(missing) == len(RULES)
            else f"not by the rules for {', '.join(sorted(missing))}"
        )
        step = "python -m pip install --force-reinstall 'detect-secrets>=1.5'"
        yield Finding("redaction", "problem", f"by llmkernel's own shapes, {what}", step)
    else:
        yield Finding(
            "redaction",
            "ok",
            f"detect-secrets {importlib.metadata.version('detect-secrets')}, {len(RULES)} rules",
        )


def check_providers(answer: Mapping[str, Any]) -> Iterator[Finding]:
    """Look at SDKs and keys; says where a key is from, never what it is."""
    for package in ("anthropic", "openai"):
        try:
            yield Finding(f"SDK {package}", "ok", importlib.metadata.version(package))
        except importlib.metadata.PackageNotFoundError:
            yield Finding(f"SDK {package}", "optional", "not installed", f"pip install {package}")
    if "error" in answer:
        yield Finding("keys", "problem", answer["error"], "Check the system's keyring.")
        return
    for name, key in answer["found"].items():
        if key.get("error"):
            yield Finding(f"key {name}", "problem", key["error"])
        elif key["origin"]:
            yield Finding(f"key {name}", "ok", f"from {key['origin']}")
        else:
            step = f"Set {key['variables'][0]} to use this provider." if key["variables"] else ""
            yield Finding(f"key {name}", "optional", "none", step)


def check_jupyter() -> Iterator[Finding]:
    """Look at configuration files and at the kernelspec."""
    from IPython.paths import get_ipython_dir

    from llmkernel.cli.kernelspec import KERNEL_NAME, find_installed
    from llmkernel.providers.keys import key_file

    profile = Path(get_ipython_dir()) / "profile_default"
    files = [profile / name for name in ("ipython_config.py", "ipython_kernel_config.py")] + [key_file()]
    present = [str(path) for path in files if path.is_file()]
    yield Finding("configuration", "ok", ", ".join(present) or "none: the defaults")
    installed = find_installed(KERNEL_NAME)
    if not installed:
        yield Finding("kernelspec", "optional", "not installed", "llmkernel install --user")
    for directory in installed[:1]:
        yield _kernelspec(directory)


def _kernelspec(directory: Path) -> Finding:
    try:
        interpreter = json.loads((directory / "kernel.json").read_text(encoding="utf-8"))["argv"][0]
    except (OSError, ValueError, LookupError, TypeError) as error:
        return Finding("kernelspec", "problem", f"{directory}: {error}", "llmkernel install --user")
    is_own = directory.is_relative_to(sys.prefix)
    if interpreter == sys.executable or (interpreter in ("python", "python3") and is_own):
        return Finding("kernelspec", "ok", str(directory))
    step = "llmkernel install --user makes it this one, where that is meant."
    return Finding("kernelspec", "optional", f"{directory} starts another Python, {interpreter}", step)


def check_directories() -> Iterator[Finding]:
    """Look at whether cache and records can be written, and at the space that is left."""
    import platformdirs

    cache = Path(
        os.environ.get("LLMKERNEL_CACHE_DIR") or platformdirs.user_cache_dir("llmkernel", appauthor=False)
    )
    for name, directory, step in (
        ("cache directory", cache, "Set LLMKERNEL_CACHE_DIR to a directory that you may write."),
        (
            "records directory",
            Path.cwd() / "kernels",
            "Set LLMKernel.records_dir, or start where you may write.",
        ),
    ):
        error = _write_error(directory)
        if error:
            yield Finding(name, "problem", f"{directory}: {error}", step)
        else:
            yield Finding(name, "ok", str(directory))
    free = shutil.disk_usage(_existing(cache)).free
    step = "" if free >= _NEEDED_BYTES else "Free some space: compilers and caches need about 2 GiB."
    yield Finding("disk space", "problem" if step else "ok", f"{free / 2**30:.1f} GiB free", step)


def _existing(directory: Path) -> Path:
    return next(path for path in (directory, *directory.parents) if path.is_dir())


def _write_error(directory: Path) -> str:
    """Return why nothing can be written to `directory` or where it would be created; empty where it can."""
    try:
        with tempfile.TemporaryFile(dir=_existing(directory)):
            return ""
    except OSError as error:
        return error.strerror or str(error)
