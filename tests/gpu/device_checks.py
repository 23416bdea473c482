# ruff: noqa: PT017 - checks also run without pytest
"""Compiling and executing on a GPU."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import ml_dtypes
import numpy as np

from llmkernel.devices.base import ExecutionOptions
from llmkernel.devices.cuda import toolchain
from llmkernel.errors import CompileError
from tests.gpu import candidates
from tests.gpu.checks import check, close, rng
from tests.gpu.running import images_for, prepare, run

HEADERS = """
cuda_fp16.h cuda_bf16.h cuda_fp8.h mma.h cooperative_groups.h cooperative_groups/reduce.h cuda_pipeline.h
cuda/std/limits cuda/barrier cuda/pipeline cuda/atomic cuda/ptx cub/block/block_reduce.cuh cub/block/block_scan.cuh
cub/warp/warp_reduce.cuh array tuple functional bit numeric
"""


@check
def facts(device):
    return {
        "limits": device.limits().to_dict(),
        "versions": device.versions(),
        "includes": [str(p) for p in toolchain.include_directories()],
        "nvrtc": toolchain.nvrtc_version(),
        "architectures": toolchain.supported_architectures(),
    }


@check
def compile_times(device):
    source = candidates.ADD + f"// {time.time_ns()}\n"
    cold = device.compile(source, ("add<float>", "add<__nv_bfloat16>"))
    warm = device.compile(source, ("add<float>", "add<__nv_bfloat16>"))
    assert not cold.is_cached
    assert warm.is_cached
    resources = cold.resources["add<float>"]
    assert resources.registers
    assert resources.max_threads_per_block
    return {
        "cold_s": cold.compile_seconds,
        "warm_s": warm.compile_seconds,
        "options": cold.options,
        "resources": str(resources),
    }


@check
def compile_error(device):
    try:
        device.compile("__global__ void f(float* x) {\n  x[0] = y;\n}\n", ("f",))
    except CompileError as error:
        assert (error.diagnostics[0].line, error.diagnostics[0].column) == (2, 10), error.diagnostics
        return {"message": str(error)}
    raise AssertionError("compiled")


@check
def headers(device):
    found = {}
    for name in HEADERS.split():
        source = (
            f"#include <{name}>\n__global__ void f(float* x) {{ x[0] = INFINITY; }} // {time.time_ns()}\n"
        )
        found[name] = round(device.compile(source, ("f",)).compile_seconds, 3)
    return found


@check
def element_wise(device):
    x = rng.standard_normal(1000).astype(np.float32)
    (y,), execution = run(device, candidates.SCALE, x, 2.5)
    assert execution.fault is None
    return {"error": close(y, np.float32(2.5) * x), "elapsed_ms": execution.elapsed_ms}


@check
def dtypes(device):
    for dtype in (np.float32, ml_dtypes.bfloat16, np.float16, np.float64, np.int64, np.complex64):
        x, y = (rng.integers(-9, 9, 300).astype(dtype) for _ in range(2))
        (z,), execution = run(device, candidates.ADD, x, y)
        assert execution.fault is None
        assert (z == x + y).all(), dtype
    return {}


@check
def scalars(device):
    values = (1.5, -2.0, 0.1, -7, 2**64 - 1, True, 1 - 2j, 3 + 4j)
    (y,), _ = run(device, candidates.SCALARS, *values)
    assert y.tolist() == [1.5, -2.0, 0.1, -7, float(2**64 - 1), 1, 1, -2, 3, 4], y
    return {}


@check
def arithmetic_is_ieee(device):
    x = np.array([1e-39, 3e-45, 1.0, 2.0, 7.0, 1e38], np.float32)
    (half, third, root), _ = run(device, candidates.ARITHMETIC, x)
    assert (half == x * np.float32(0.5)).all(), "denormals are flushed"
    assert (third == x / np.float32(3)).all(), "division is not correctly rounded"
    assert (root == np.sqrt(x)).all(), "square root is not correctly rounded"
    return {"half": half.tolist()}


@check
def names(device):
    (y,), _ = run(device, candidates.LIMITS)
    expected = [np.finfo(np.float32).max, np.finfo(np.float32).eps, -np.inf, 2**31 - 1, 5, np.pi]
    assert y.tolist() == [float(v) for v in expected], y
    return {}


@check
def zero_filled_output(device):
    x = rng.standard_normal(100_000).astype(np.float32)
    (s,), _ = run(device, candidates.SUM, x)
    return {"error": close(s, x.astype(np.float64).sum(), 1e-4)}


@check
def in_place(device):
    (x,), _ = run(device, candidates.INCREMENT, np.arange(100, dtype=np.int32))
    assert (x == np.arange(100) + 1).all()
    return {}


@check
def repeat_and_swap(device):
    x = np.arange(10, dtype=np.float32)
    (y,), _ = run(device, candidates.STEPS, x)
    assert (y == 32 * x + 31).all()
    return {}


@check
def misaligned_input(device):
    x = rng.standard_normal(1001).astype(np.float32)
    (y,), _ = run(device, candidates.COPY, x, misalign=4)
    assert (y == x).all()
    return {}


@check
def empty_arrays(device):
    (y,), execution = run(device, candidates.SCALE, np.empty(0, np.float32), 1.0)
    assert execution.fault is None
    assert y.size == 0
    return {}


@check
def shared_memory_above_48_kb(device):
    n = 50_000
    x = rng.standard_normal(n).astype(np.float32)
    (y,), execution = run(device, candidates.SHARED, x)
    assert execution.fault is None, execution.fault
    assert (y == x[::-1] + x[0]).all()
    return {"bytes": 4 * n + 4096}


@check
def cluster_of_16(device):
    x = rng.standard_normal(16).astype(np.float32)
    (y,), execution = run(device, candidates.CLUSTER, x)
    assert execution.fault is None, execution.fault
    assert (y == np.roll(x, -1)).all()
    return {}


@check
def cooperative_grid(device):
    x = rng.standard_normal(100_000).astype(np.float32)
    (y,), execution = run(device, candidates.COOPERATIVE, x)
    assert execution.fault is None, execution.fault
    return {"error": close(y, np.full(x.shape, x.astype(np.float64).sum()), 1e-4)}


@check
def tensor_maps(device):
    x = rng.standard_normal((100, 200)).astype(np.float32)
    (y,), execution = run(device, candidates.TENSOR_COPY, x)
    assert execution.fault is None, execution.fault
    assert (y == x + 1).all()
    return {}


@check
def warpgroup_products(device):
    found = {}
    for columns in (64, 128, 256):
        for dtype in (ml_dtypes.bfloat16, np.float16):
            a, b = (rng.standard_normal(shape).astype(dtype) for shape in ((128, 320), (512, 320)))
            (c,), execution = run(device, candidates.WARPGROUP.replace("COLUMNS", str(columns)), a, b)
            assert execution.fault is None, execution.fault
            expected = a.astype(np.float64) @ b.astype(np.float64).T
            found[f"{columns} {np.dtype(dtype).name}"] = close(c, expected, 1e-5)
    return found


@check
def warp_products(device):
    found = {}
    for dtype in (ml_dtypes.bfloat16, np.float16):
        a, b = (rng.standard_normal(shape).astype(dtype) for shape in ((16, 16), (8, 16)))
        (c,), _ = run(device, candidates.WARP_PRODUCT, a, b)
        found[np.dtype(dtype).name] = close(c, a.astype(np.float64) @ b.astype(np.float64).T, 1e-5)
    return found


@check
def shared_memory_is_dirtied(device):
    (y,), _ = run(device, candidates.STALE_SHARED, 1024, options=ExecutionOptions(seed=3))
    (again,), _ = run(device, candidates.STALE_SHARED, 1024, options=ExecutionOptions(seed=4))
    assert (y == 0x7FFFFFFF).sum() > 300, y[:8]
    assert (y != again).sum() > 300
    return {"nan_words": int((y == 0x7FFFFFFF).sum()), "nonzero": int((y != 0).sum())}


@check
def module_state(device):
    _, plan, module = prepare(device, candidates.COUNTER, ())
    values = []
    for fresh in (False, False, True, False):
        images = images_for(plan, ())
        device.execute(module, plan, images, ExecutionOptions(is_fresh_module=fresh))
        values.append(int(images["y"].payload.view(np.int32)[0]))
    assert values[1] == values[0] + 1
    assert values[2] == 1
    assert values[3] == values[1] + 1
    runs = [images_for(plan, ()) for _ in range(3)]
    device.execute_many(module, plan, runs, ExecutionOptions(is_fresh_module=True))
    assert [int(r["y"].payload.view(np.int32)[0]) for r in runs] == [1, 2, 3]
    return {"values": values}


@check
def printing(device):
    _, execution = run(device, candidates.PRINTS)
    assert execution.printed == "thread 0 says hello\nthread 1 says hello\n", repr(execution.printed)
    return {}


@check
def faults(device):
    children = {
        name: subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("smoke.py")), "--fault", name],
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in candidates.FAULTS
    }
    found, wrong = {}, []
    for name, child in children.items():
        output, _ = child.communicate(timeout=120)
        lines = [line for line in output.splitlines() if line.startswith("{")]
        found[name] = (
            json.loads(lines[-1]) if lines else {"kind": f"no answer, exit status {child.returncode}"}
        )
        if found[name]["kind"] not in candidates.FAULTS[name]:
            wrong.append(name)
    found["wrong"] = wrong
    assert found["SECOND_KERNEL"].get("kernel") == "bad", found
    assert not wrong, json.dumps(found, indent=1)
    return found
