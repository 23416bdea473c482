# ruff: noqa: PT017 - checks also run without pytest
"""Accepted kernels in the process that owns the arrays."""

from __future__ import annotations

import statistics
import time

import numpy as np

from llmkernel.candidate.candidate import parse_candidate
from llmkernel.devices.cuda.device import CudaDevice
from llmkernel.errors import BindingError
from tests.gpu import candidates
from tests.gpu.checks import check, rng, torch_caller
from tests.gpu.running import domain_for, run


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
    expected = x
    for _ in range(5):
        expected = torch.add(1.0, expected, alpha=2.0)
    torch.testing.assert_close(steps(x), expected, rtol=1e-6, atol=0.0)
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
def torch_calls_in_a_row(device):
    import torch

    add = torch_caller(device, candidates.ADD, ["float32", "float32"])
    x, y = (torch.randn(5000, device="cuda") for _ in range(2))
    for _ in range(3):
        assert torch.equal(add(x, y), x + y)
    assert add._fast is not None
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        total = x
        for _ in range(50):
            total = add(total, y)
    side.synchronize()
    expected = x
    for _ in range(50):
        expected = expected + y
    assert torch.equal(total, expected)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        z = add(x, y)
    x.fill_(3.0)
    graph.replay()
    torch.cuda.synchronize()
    assert torch.equal(z, 3 + y)
    for n in (7, 0, 5000, 7, 7, 7, 5000):
        assert torch.equal(add(x[:n], y[:n]), x[:n] + y[:n])
    for bad in ((x, y[::2]), (x, y.double()), (x,), (x, y.cpu()), (x, y.clone().requires_grad_())):
        try:
            add(*bad)
        except BindingError:
            continue
        raise AssertionError(f"{bad} was taken")
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
    right = []

    def work(k):
        x = torch.full((500,), float(k), device="cuda")
        with torch.cuda.stream(torch.cuda.Stream()):
            for _ in range(300):
                y = scale(x, 2.0)
            torch.cuda.current_stream().synchronize()
            if (y == 2 * k).all().item():
                right.append(k)

    workers = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert sorted(right) == list(range(8)), right
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
    copy = device.caller(
        parse_candidate(candidates.TRANSPOSED),
        domain_for(candidates.TRANSPOSED, "cupy", ["float32"], on_gpu=True),
    )
    m = x.reshape(20, 50)
    assert (copy(m.T[::2]) == m.T[::2]).all()
    try:
        copy(m[:, ::-1])
    except BindingError as error:
        assert error.reason == "layout", error
    else:
        raise AssertionError("an array that runs backwards was taken")
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
