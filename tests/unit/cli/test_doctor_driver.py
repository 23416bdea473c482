"""The probe of the NVIDIA driver, against drivers built here: one that works, one that refuses, one that crashes."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest

from llmkernel.cli.doctor_checks import run_probe

WORKING = """
#include <string.h>
int cuInit(unsigned flags) { return 0; }
int cuDriverGetVersion(int* version) { *version = 13010; return 0; }
int cuDeviceGetCount(int* count) { *count = 2; return 0; }
int cuDeviceGet(int* device, int ordinal) { *device = ordinal + 40; return 0; }
int cuDeviceGetName(char* name, int length, int device) {
    strncpy(name, device == 40 ? "NVIDIA H200" : "NVIDIA B200", length);
    return 0;
}
int cuDeviceGetAttribute(int* value, int attribute, int device) {
    *value = attribute == 75 ? (device == 40 ? 9 : 10) : 0;
    return 0;
}
int cuDeviceTotalMem_v2(size_t* bytes, int device) { *bytes = 141ull << 30; return 0; }
"""

REFUSING = """
int cuInit(unsigned flags) { return 803; }
int cuGetErrorName(int error, const char** name) { *name = "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"; return 0; }
"""

CRASHING = "int cuInit(unsigned flags) { return *(volatile int*)8; }"


@pytest.fixture
def driver(tmp_path, monkeypatch):
    if sys.platform != "linux":
        pytest.skip("libcuda.so.1 is its name on Linux")

    def build(source):
        (tmp_path / "driver.c").write_text("#include <stddef.h>\n" + source)
        library = tmp_path / "libcuda.so.1"
        command = ["-shared", "-fPIC", "-o", str(library), str(tmp_path / "driver.c")]
        compiler = shutil.which("gcc")
        subprocess.run(
            [*([compiler] if compiler else [sys.executable, "-m", "ziglang", "cc"]), *command], check=True
        )
        monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
        return run_probe("driver")

    return build


def test_a_driver_that_works_names_its_gpus(driver):
    assert driver(WORKING) == {
        "found": {
            "is_found": True,
            "version": [13, 1],
            "gpus": [
                {"name": "NVIDIA H200", "capability": [9, 0], "memory_bytes": 141 << 30},
                {"name": "NVIDIA B200", "capability": [10, 0], "memory_bytes": 141 << 30},
            ],
        }
    }


def test_a_driver_that_refuses_says_how(driver):
    assert driver(REFUSING) == {"found": {"is_found": True, "error": "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"}}


def test_a_driver_that_crashes_takes_only_the_probe_with_it(driver):
    assert driver(CRASHING) == {"error": "the process ended with signal 11"}
