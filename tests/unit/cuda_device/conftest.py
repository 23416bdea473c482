"""The fake driver: built once a session, put in the place of libcuda by the `driver` fixture."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path

import pytest

from llmkernel.devices.cuda import device as device_module
from llmkernel.devices.cuda import driver as driver_module
from llmkernel.devices.cuda import facts, runtime


def _compiler() -> list[str] | None:
    found = shutil.which("cc")
    if found:
        return [found]
    try:
        import ziglang
    except ImportError:
        return None
    return [str(Path(ziglang.__file__).parent / "zig"), "cc"]


@pytest.fixture(scope="session")
def fake_library(tmp_path_factory):
    compiler = _compiler()
    if compiler is None:
        pytest.skip("no C compiler builds the fake driver")
    library = tmp_path_factory.mktemp("driver") / "libcuda.so"
    source = Path(__file__).with_name("fake_driver.c")
    subprocess.run([*compiler, "-shared", "-fPIC", "-w", "-o", library, source], check=True)
    return ctypes.CDLL(str(library))


@pytest.fixture
def driver(fake_library, monkeypatch):
    """A `Driver` over the fake library, which every module of the package then uses."""
    fake_library.fake_reset()
    fake_library.fake_record.restype = ctypes.c_char_p
    made = driver_module.Driver(fake_library)
    made.record = lambda: fake_library.fake_record().decode()
    made.fake = fake_library
    monkeypatch.setattr(driver_module, "load_driver", lambda: made)
    monkeypatch.setattr(device_module, "load_driver", lambda: made)
    caches = (driver_module.primary_context, runtime.device_limits, facts._nvml_handle)
    for cache in caches:
        cache.cache_clear()
    yield made
    for cache in caches:
        cache.cache_clear()


@pytest.fixture
def limits(driver):
    return facts.device_limits(driver, 0)
