"""Timing on a GPU, beside a public timer."""

from __future__ import annotations

import functools
import statistics
import time

import numpy as np

from llmkernel.devices.base import ExecutionOptions
from llmkernel.devices.cuda import bandwidth
from tests.gpu import candidates
from tests.gpu.checks import check, rng, torch_caller
from tests.gpu.running import images_for, prepare


@check
def executions_per_second(device):
    x = rng.standard_normal(1 << 20).astype(np.float32)
    _, plan, module = prepare(device, candidates.SCALE, (x, 2.0))
    images = [images_for(plan, (x, 2.0)) for _ in range(20)]
    started = time.perf_counter()
    device.execute_many(module, plan, images, ExecutionOptions())
    return {"ms_an_execution_of_4_MB": (time.perf_counter() - started) / 20 * 1e3}


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
        call = torch_caller(device, candidates.COPY, ["float32"])
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
