"""The cuda device on a real GPU: every check of the smoke test that asserts something."""

import pytest

from llmkernel.devices.cuda.device import CudaDevice
from tests.gpu import smoke

MEASUREMENTS = {"facts", "executions_per_second", "ceilings", "host_overhead", "sampling"}

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(CudaDevice.unavailable_reason() is not None, reason="no usable GPU here"),
]


@pytest.fixture(scope="module")
def device():
    device = CudaDevice()
    yield device
    device.close()


@pytest.mark.parametrize(
    "check", [c for c in smoke.ORDERED if c.__name__ not in MEASUREMENTS], ids=lambda c: c.__name__
)
def test_the_device(device, check):
    check(device)


def test_a_sample_is_of_the_draw_that_it_says(device):
    import numpy as np

    from tests.gpu import candidates
    from tests.gpu.running import prepare

    draws = [np.full(1000, d, np.float32) for d in range(8)]
    _, plan, module = prepare(device, candidates.COPY, (draws[0],))
    sampler = device.sampler(module, plan, [{"x": d.view(np.uint8)} for d in draws])
    assert len(sampler.sample(40)) == 40
    for draw, payloads in sampler.outputs():
        assert (payloads["y"].view(np.float32) == draw).all()
    sampler.close()
