# ruff: noqa: PT017 - a script, not a test
"""Exercises the cuda device on a machine with a GPU: `python tests/gpu/smoke.py [OUT.json]`.

Prints one line a check and ends with 1 when one failed. Needs CuPy and PyTorch.
"""

from __future__ import annotations

import functools
import json
import statistics
import subprocess
import sys
import time
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import ml_dtypes
import numpy as np

from llmkernel.candidate.candidate import parse_candidate
from llmkernel.devices.base import ExecutionOptions
from llmkernel.devices.cuda import bandwidth, toolchain
from llmkernel.devices.cuda.device import CudaDevice
from llmkernel.errors import BindingError, CompileError
from tests.gpu import candidates
from tests.gpu.running import domain_for, images_for, prepare, run

CHECKS = []
HEADERS = """
cuda_fp16.h cuda_bf16.h cuda_fp8.h mma.h cooperative_groups.h cooperative_groups/reduce.h cuda_pipeline.h
cuda/std/limits cuda/barrier cuda/pipeline cuda/atomic cuda/ptx cub/block/block_reduce.cuh cub/block/block_scan.cuh
cub/warp/warp_reduce.cuh array tuple functional bit numeric
"""
rng = np.random.default_rng(0)


def check(function):
    CHECKS.append(function)
    return function


def close(got, expected, tolerance=1e-5):
    scale = float(np.abs(expected).max()) or 1.0
    error = float(np.abs(np.asarray(got, np.float64) - np.asarray(expected, np.float64)).max()) / scale
    assert error <= tolerance, f"error {error:.3g} of the largest value"
    return error


def host_us(function, count=2000, rounds=7):
    """Median host microseconds a call, without waiting for the GPU inside a round."""
    import torch

    for _ in range(200):
        function()
    found = []
    for _ in range(rounds):
        torch.cuda.synchronize()
        started = time.perf_counter()
        for _ in range(count):
            function()
        found.append((time.perf_counter() - started) / count * 1e6)
    torch.cuda.synchronize()
    return round(statistics.median(found), 2)


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
def executions_per_second(device):
    x = rng.standard_normal(1 << 20).astype(np.float32)
    _, plan, module = prepare(device, candidates.SCALE, (x, 2.0))
    images = [images_for(plan, (x, 2.0)) for _ in range(20)]
    started = time.perf_counter()
    device.execute_many(module, plan, images, ExecutionOptions())
    return {"ms_an_execution_of_4_MB": (time.perf_counter() - started) / 20 * 1e3}


@check
def faults(device):
    children = {
        name: subprocess.Popen([sys.executable, __file__, "--fault", name], stdout=subprocess.PIPE, text=True)
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


def fault_child(name):
    device = CudaDevice()
    source = getattr(candidates, name)
    arguments = (10_000_000,) if "n: int32" in source else ()
    _, plan, module = prepare(device, source, arguments)
    started = time.perf_counter()
    execution = device.execute(module, plan, images_for(plan, arguments), ExecutionOptions(timeout_seconds=2))
    fault = execution.fault
    seconds = time.perf_counter() - started
    if fault is None:
        answer = {"kind": None}
    else:
        answer = {
            "kind": fault.kind,
            "message": fault.message,
            "kernel": fault.kernel,
            "details": fault.details,
        }
    print(json.dumps(answer | {"seconds": seconds, "printed": execution.printed[:300]}), flush=True)
    import os

    os._exit(0)


@check
def sampling(device):
    import torch
    from triton.testing import do_bench

    found = {}
    for elements in (1 << 26, 1 << 22, 1 << 14):
        draws = [rng.standard_normal(elements).astype(np.float32) for _ in range(8)]
        _, plan, module = prepare(device, candidates.COPY, (draws[0],))
        started = time.perf_counter()
        sampler = device.sampler(module, plan, [{"x": d.view(np.uint8)} for d in draws])
        set_up = time.perf_counter() - started
        started = time.perf_counter()
        samples = sampler.sample(60)
        took = time.perf_counter() - started
        for draw, payloads in sampler.outputs():
            assert (payloads["y"].view(np.float32) == draws[draw]).all()
        call = device.caller(
            parse_candidate(candidates.COPY), domain_for(candidates.COPY, "torch", ["float32"], on_gpu=True)
        )
        x = torch.from_numpy(draws[0]).cuda()
        theirs = do_bench(functools.partial(call, x), warmup=50, rep=200, return_mode="median")
        median = statistics.median(samples)
        found[elements] = {
            "ours_ms": median, "do_bench_ms": theirs, "ratio": median / theirs, "TB/s": 8 * elements / median / 1e9,
            "event_overhead_ms": sampler.timer.event_overhead_ms, "hold_s": sampler.timer.hold_seconds,
            "p20": sorted(samples)[12], "p80": sorted(samples)[48], "set_up_s": set_up, "seconds_for_60": took,
        }  # fmt: skip
        sampler.close()
    return found


@check
def ceilings(device):
    return {
        "copy_TB_s": bandwidth.copy_bandwidth(),
        **{
            f"{d}_TFLOP_s": bandwidth.matrix_rate(d)
            for d in ("bfloat16", "float16", "tf32", "float32", "float64")
        },
    }


def torch_caller(device, source, dtypes, **options):
    return device.caller(parse_candidate(source), domain_for(source, "torch", dtypes, on_gpu=True, **options))


@check
def torch_calls(device):
    import torch

    scale = torch_caller(device, candidates.SCALE, ["float32", "float32"])
    x = torch.randn(1000, device="cuda")
    assert torch.equal(scale(x, 2.0), 2 * x)
    assert torch.equal(scale(x, 3), 3 * x)
    assert scale(x[:0], 2.0).shape == (0,)
    assert (
        torch.copysign(torch.ones(1, device="cuda"), scale(torch.ones(1, device="cuda"), -0.0)).item() == -1
    )
    add = torch_caller(device, candidates.ADD, ["bfloat16", "bfloat16"])
    b = torch.randn(77, device="cuda", dtype=torch.bfloat16)
    assert torch.equal(add(b, b), b + b)
    increment = torch_caller(device, candidates.INCREMENT, ["int32"])
    i = torch.arange(5, device="cuda", dtype=torch.int32)
    version = i._version
    assert increment(i) is None
    assert i.tolist() == [1, 2, 3, 4, 5]
    assert i._version > version
    transposed = torch_caller(device, candidates.TRANSPOSED, ["float32"])
    m = torch.randn(40, 70, device="cuda")
    assert torch.equal(transposed(m.t()), m.t())
    assert torch.equal(transposed(m[::2, 3:50:4]), m[::2, 3:50:4])
    copy = torch_caller(device, candidates.COPY, ["float32"])
    long = torch.randn(4097, device="cuda")
    assert torch.equal(copy(long[1:]), long[1:])
    assert torch.equal(copy(long[:4096]), long[:4096])
    steps = torch_caller(device, candidates.STEPS, ["float32"])
    assert torch.equal(steps(x), 32 * x + 31)
    arithmetic = torch_caller(device, candidates.ARITHMETIC, ["float32"], returns_tuple=True)
    results = arithmetic(x.abs()[:100])
    assert torch.equal(results[0], x.abs()[:100] / 2)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        y = x
        for _ in range(50):
            y = scale(y, 1.0)
    side.synchronize()
    assert torch.equal(x, y)
    return {}


@check
def torch_refusals(device):
    import torch

    add = torch_caller(device, candidates.ADD, ["float32", "float32"])
    x = torch.randn(8, device="cuda")
    cases = {
        "count": (x,),
        "dtype": (x, x.double()),
        "device": (x, x.cpu()),
        "grad": (x, x.clone().requires_grad_()),
        "kind": (x, x.cpu().numpy()),
        "layout": (x, torch.randn(16, device="cuda")[::2]),
        "rank": (x, x.reshape(2, 4)),
        "shape": (x, x[:4]),
    }
    found = {}
    for reason, arguments in cases.items():
        try:
            add(*arguments)
        except BindingError as error:
            found[reason] = str(error)
            assert error.reason == reason, (reason, error.reason, str(error))
        else:
            raise AssertionError(f"{reason} was taken")
    with torch.no_grad():
        add(x, x.clone().requires_grad_())
    conj = torch_caller(device, candidates.ADD, ["complex64", "complex64"])
    c = torch.randn(8, device="cuda", dtype=torch.complex64)
    try:
        conj(c, c.conj())
    except BindingError as error:
        assert error.reason == "layout"
    else:
        raise AssertionError("a conjugated view was taken")
    return found


@check
def cuda_graphs(device):
    import torch

    scale = torch_caller(device, candidates.SCALE, ["float32", "float32"])
    total = torch_caller(device, candidates.SUM, ["float32"])
    x = torch.randn(1000, device="cuda")
    scale(x, 2.0), total(x)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = scale(x, 2.0)
        s = total(y)
    x.copy_(torch.ones(1000, device="cuda"))
    graph.replay()
    torch.cuda.synchronize()
    assert torch.equal(y, 2 * x)
    assert abs(s.item() - 2000) < 0.1
    return {}


@check
def threads(device):
    import threading

    import torch

    scale = torch_caller(device, candidates.SCALE, ["float32", "float32"])
    wrong = []

    def work(k):
        x = torch.full((500,), float(k), device="cuda")
        with torch.cuda.stream(torch.cuda.Stream()):
            for _ in range(300):
                y = scale(x, 2.0)
            torch.cuda.current_stream().synchronize()
            if not (y == 2 * k).all().item():
                wrong.append(k)

    workers = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong, wrong
    return {}


@check
def second_gpu(device):
    import torch

    if torch.cuda.device_count() < 2:
        return {"skipped": "one GPU"}
    scale = torch_caller(device, candidates.SCALE, ["float32", "float32"])
    for index in (1, 0, 1):
        x = torch.randn(1000, device=f"cuda:{index}")
        y = scale(x, 2.0)
        assert y.device == x.device
        assert torch.equal(y, 2 * x)
        with torch.cuda.device(1 - index):
            assert torch.equal(scale(x, 4.0), 4 * x)
    other = CudaDevice(1)
    x = rng.standard_normal(100).astype(np.float32)
    (y,), execution = run(other, candidates.SCALE, x, 2.0)
    assert execution.fault is None
    assert (y == 2 * x).all()
    return {}


@check
def cupy_calls(device):
    import cupy

    scale = device.caller(
        parse_candidate(candidates.SCALE),
        domain_for(candidates.SCALE, "cupy", ["float32", "float32"], on_gpu=True),
    )
    x = cupy.random.standard_normal(1000, dtype=cupy.float32)
    assert (scale(x, 2.0) == 2 * x).all()
    with cupy.cuda.Stream(non_blocking=True) as stream:
        y = scale(scale(x, 2.0), 2.0)
        stream.synchronize()
    assert (y == 4 * x).all()
    reasons = []
    for bad in (x.astype("float64"), x[::2], cupy.asnumpy(x)):
        try:
            scale(bad, 1.0)
        except BindingError as error:
            reasons.append(error.reason)
    assert reasons == ["dtype", "layout", "kind"], reasons
    return {}


@check
def host_calls(device):
    import torch

    candidate = parse_candidate(candidates.SCALE)
    scale = device.caller(
        candidate, domain_for(candidates.SCALE, "numpy", ["float32", "float32"], on_gpu=False)
    )
    x = rng.standard_normal((1000, 2)).astype(np.float32)[:, 0]
    assert (scale(x, 2.0) == 2 * x).all()
    scale = device.caller(
        candidate, domain_for(candidates.SCALE, "torch", ["float32", "float32"], on_gpu=False)
    )
    t = torch.randn(1000)
    assert torch.equal(scale(t, 2.0), 2 * t)
    add = device.caller(
        parse_candidate(candidates.ADD), domain_for(candidates.ADD, "torch", ["bfloat16"] * 2, on_gpu=False)
    )
    b = torch.randn(100).bfloat16()
    assert torch.equal(add(b, b), b + b)
    increment = device.caller(
        parse_candidate(candidates.INCREMENT),
        domain_for(candidates.INCREMENT, "numpy", ["int32"], on_gpu=False),
    )
    i = np.arange(10, dtype=np.int32)
    increment(i[::2])
    assert i.tolist() == [1, 1, 3, 3, 5, 5, 7, 7, 9, 9]
    return {}


@check
def host_overhead(device):
    import cupy
    import torch

    x, y = (torch.randn(1024, device="cuda") for _ in range(2))
    add = torch_caller(device, candidates.ADD, ["float32", "float32"])
    scale = torch_caller(device, candidates.SCALE, ["float32", "float32"])
    increment = torch_caller(device, candidates.INCREMENT, ["int32"])
    i = torch.zeros(1024, dtype=torch.int32, device="cuda")
    cx, cy = (cupy.random.standard_normal(1024, dtype=cupy.float32) for _ in range(2))
    cupy_add = device.caller(
        parse_candidate(candidates.ADD), domain_for(candidates.ADD, "cupy", ["float32"] * 2, on_gpu=True)
    )
    raw = cupy.RawKernel(
        'extern "C" __global__ void add(const float* x, const float* y, float* z, int n) {'
        " int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) z[i] = x[i] + y[i]; }",
        "add",
    )

    def raw_add():
        z = cupy.empty(1024, cupy.float32)
        raw((4,), (256,), (cx, cy, z, 1024))
        return z

    add(x, y)
    call = next(iter(add._cache.calls.values()))
    stream = torch.cuda.current_stream().cuda_stream
    z = torch.empty_like(x)
    addresses = [x.data_ptr(), y.data_ptr(), z.data_ptr()]
    return {
        "torch caller add(x, y)": host_us(lambda: add(x, y)),
        "torch caller scale(x, a)": host_us(lambda: scale(x, 2.0)),
        "torch caller increment(x)": host_us(lambda: increment(i)),
        "torch.add": host_us(lambda: torch.add(x, y)),
        "torch.empty": host_us(lambda: torch.empty((1024,), dtype=torch.float32, device="cuda")),
        "launch alone": host_us(lambda: call.launch(addresses, stream)),
        "cupy caller add(x, y)": host_us(lambda: cupy_add(cx, cy)),
        "RawKernel, CuPy arrays": host_us(raw_add),
        "cupy.add": host_us(lambda: cupy.add(cx, cy)),
    }


def main():
    arguments = sys.argv[1:]
    if arguments[:1] == ["--fault"]:
        fault_child(arguments[1])
    reason = CudaDevice.unavailable_reason()
    if reason:
        sys.exit(reason)
    device = CudaDevice()
    results, failed = {}, []
    for function in CHECKS:
        started = time.perf_counter()
        try:
            answer, status = function(device), "ok"
        except BaseException:
            answer, status = {"traceback": traceback.format_exc()}, "FAILED"
            failed.append(function.__name__)
        seconds = time.perf_counter() - started
        results[function.__name__] = {"status": status, "seconds": round(seconds, 3), **answer}
        print(f"{status:6} {seconds:7.2f} s  {function.__name__}", flush=True)
        if (answer and function is not facts) or status == "FAILED":
            text = answer.get("traceback") or json.dumps(answer, default=str)
            print(
                "       " + (text[-1500:] if status == "FAILED" else text[:900]).replace("\n", "\n       "),
                flush=True,
            )
    print(json.dumps(results["facts"], default=str)[:1500])
    if arguments:
        Path(arguments[0]).write_text(json.dumps(results, indent=1, default=str))
    print(f"{len(CHECKS) - len(failed)} of {len(CHECKS)} checks passed", *failed)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
