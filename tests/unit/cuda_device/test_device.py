"""The device over the fake driver, with code compiled by the real NVRTC."""

import json

import numpy as np
import pytest

from llmkernel.devices.base import ExecutionOptions, Image, Module
from llmkernel.devices.cuda import compiler, toolchain
from llmkernel.devices.cuda import device as device_module
from llmkernel.devices.cuda.device import CudaDevice, Handle
from llmkernel.devices.plan import Buffer, KernelLaunch, LaunchPlan, PointerArgument, ScalarArgument
from llmkernel.errors import DeviceError, DeviceUnavailableError, LaunchError

SOURCE = """
extern "C" __global__ void add_one(const float* x, float* y, int n) { for (int i = 0; i < n; i++) y[i] = x[i] + 1; }
extern "C" __global__ void illegal(float* y) { y[1 << 30] = 1; }
extern "C" __global__ void endless() { while (true) __nanosleep(100); }
extern "C" __global__ void prints() { printf("hello"); }
extern "C" __global__ void asserts(int x) { assert(x > 0); }
"""
KERNELS = ("add_one", "illegal", "endless", "prints", "asserts")


@pytest.fixture
def device(driver):
    device = CudaDevice()
    yield device
    device.close()


@pytest.fixture
def module(device, driver):
    compiled = compiler.compile_cached(SOURCE, KERNELS, "sm_90a")
    return Module(SOURCE, KERNELS, 0.0, handle=Handle(compiled, compiler.load_fresh(driver, compiled.binary)))


def launch(kernel, *arguments):
    return KernelLaunch(kernel, (1, 1, 1), (32, 1, 1), 0, None, False, arguments, 5)


def add_one_plan(n, **output):
    return LaunchPlan(
        (Buffer("x", "float32", (n,), "input"), Buffer("y", "float32", (n,), "output", **output)),
        (launch("add_one", PointerArgument("x"), PointerArgument("y"), ScalarArgument("int32", n)),),
        ("y",),
    )


def image(payload, misalign=0, guard=512):
    data = np.full(2 * guard + payload.nbytes, 0xAB, np.uint8)
    made = Image(data, guard, payload.nbytes, misalign)
    made.payload[:] = payload.view(np.uint8)
    return made


def test_no_context_is_made_to_find_out_what_there_is(driver):
    before = driver.fake.fake_contexts()
    assert CudaDevice.unavailable_reason() is None
    device = CudaDevice()
    assert device.limits().arch == "sm_90a"
    assert device.versions()["gpu"] == "Fake GPU 0"
    assert json.dumps(device.limits().to_dict())
    device.close()
    assert driver.fake.fake_contexts() == before


def test_the_payload_is_computed_and_the_guards_come_back(device, module):
    x = np.arange(5, dtype=np.float32)
    images = {"x": image(x), "y": image(np.zeros(5, np.float32))}
    execution = device.execute(module, add_one_plan(5), images, ExecutionOptions())
    assert execution.fault is None
    assert execution.elapsed_ms == 0.25
    assert images["y"].payload.view(np.float32).tolist() == [1, 2, 3, 4, 5]
    assert (images["y"].data[:512] == 0xAB).all()
    assert (images["y"].data[-512:] == 0xAB).all()


@pytest.mark.parametrize("misalign", [0, 4])
def test_payloads_are_placed_against_256_bytes_and_addresses_shift(device, module, monkeypatch, misalign):
    seen = []
    place = device._arena.place

    def spy(images, order):
        places = place(images, order)
        seen.append({name: address + images[name].offset for name, address in places.items()})
        return places

    monkeypatch.setattr(device._arena, "place", spy)
    runs = [
        {"x": image(np.ones(5, np.float32), misalign), "y": image(np.zeros(5, np.float32))} for _ in range(6)
    ]
    device.execute_many(module, add_one_plan(5), runs, ExecutionOptions())
    assert {places["x"] % 256 for places in seen} == {misalign}
    assert {places["y"] % 256 for places in seen} == {0}
    assert len({places["x"] for places in seen}) > 1


def test_zero_fill_wins_over_the_image(device, module):
    plan = LaunchPlan((Buffer("y", "float32", (3,), "output", is_zeroed=True),), (), ("y",))
    images = {"y": image(np.full(3, 7, np.float32))}
    device.execute(module, plan, images, ExecutionOptions())
    assert not images["y"].payload.any()


def test_a_fault_names_the_kernel_and_ends_the_context(device, module):
    plan = LaunchPlan(
        (Buffer("y", "float32", (1,), "output"),),
        (launch("prints"), launch("illegal", PointerArgument("y"))),
        ("y",),
    )
    runs = [{"y": image(np.zeros(1, np.float32))} for _ in range(3)]
    executions = device.execute_many(module, plan, runs, ExecutionOptions())
    assert len(executions) == 1
    fault = executions[0].fault
    assert (fault.kind, fault.kernel) == ("illegal_address", "illegal")
    assert fault.details["is_context_lost"] is True
    assert json.dumps(fault.details)
    with pytest.raises(DeviceError, match="lost"):
        device.execute(module, plan, runs[0], ExecutionOptions())


def test_a_kernel_that_does_not_end_is_a_timeout(device, module):
    plan = LaunchPlan((), (launch("endless"),), ())
    fault = device.execute(module, plan, {}, ExecutionOptions(timeout_seconds=0.05)).fault
    assert (fault.kind, fault.kernel) == ("timeout", "endless")
    assert fault.details["is_context_lost"] is True


def test_what_kernels_print_is_captured(device, module, capfd):
    plan = LaunchPlan((), (launch("prints"),), ())
    assert device.execute(module, plan, {}, ExecutionOptions()).printed == "hello from the device\n"
    assert capfd.readouterr().out == ""


def test_a_failed_assertion_gives_line_block_and_thread(device, module):
    plan = LaunchPlan((), (launch("asserts", ScalarArgument("int32", 0)),), ())
    fault = device.execute(module, plan, {}, ExecutionOptions()).fault
    assert fault.kind == "trap"
    assert fault.details["line"] == 7
    assert fault.details["block"] == [1, 2, 3]
    assert fault.details["thread"] == [4, 5, 6]
    assert "x > 0" in fault.message


def test_memory_that_is_not_there_is_a_fault_and_not_the_end(device, module, driver):
    driver.fake.fake_limit_memory(1024)
    big = {"x": image(np.zeros(1 << 20, np.float32)), "y": image(np.zeros(1 << 20, np.float32))}
    fault = device.execute(module, add_one_plan(1 << 20), big, ExecutionOptions(dirties_shared=False)).fault
    assert fault.kind == "out_of_memory"
    assert fault.details["is_context_lost"] is False
    driver.fake.fake_reset()
    small = {"x": image(np.zeros(2, np.float32)), "y": image(np.zeros(2, np.float32))}
    assert device.execute(module, add_one_plan(2), small, ExecutionOptions()).fault is None


def test_a_fresh_module_is_loaded_and_unloaded(device, module, driver):
    driver.fake.fake_reset()
    device.execute(
        module, LaunchPlan((), (), ()), {}, ExecutionOptions(is_fresh_module=True, dirties_shared=False)
    )
    assert driver.record().startswith("load;")
    assert driver.record().endswith("unload;")


def test_a_limit_is_raised_before_anything_runs(device, module):
    bad = KernelLaunch("prints", (1, 1, 1), (4096, 1, 1), 0, None, False, (), 9)
    with pytest.raises(LaunchError) as caught:
        device.execute(module, LaunchPlan((), (bad,), ()), {}, ExecutionOptions())
    assert caught.value.line == 9


def test_a_module_of_another_architecture_has_resources_and_does_not_run(device):
    module = device.compile(SOURCE, ("add_one",), arch="sm_80")
    assert module.resources["add_one"].registers > 0
    with pytest.raises(DeviceError, match="another architecture"):
        device.execute(module, add_one_plan(1), {}, ExecutionOptions())


def test_samples_are_of_fresh_draws_and_outputs_belong_to_their_draw(device, module):
    draws = [{"x": np.full(4, d, np.float32).view(np.uint8)} for d in range(8)]
    sampler = device.sampler(module, add_one_plan(4), draws)
    assert sampler.sample(20) == [0.25] * 20
    outputs = sampler.outputs()
    assert len(outputs) == 4
    for draw, payloads in outputs:
        assert payloads["y"].view(np.float32).tolist() == [draw + 1] * 4
    assert sampler.timer.event_overhead_ms == 0.25
    sampler.close()


def test_occupancy_is_of_the_launch(device, module):
    module.resources = compiler.loaded_resources(
        device.driver, module.handle.loaded, module.handle.compiled.binary
    )
    assert device.occupancy(module, add_one_plan(4))["add_one"].occupancy == 1.0


@pytest.mark.parametrize(
    ("lacking", "text"),
    [
        ("driver", "No NVIDIA driver was found"),
        ("gpu", "shows no GPU"),
        ("cupy", "CuPy is not installed"),
        ("nvrtc", "NVRTC"),
        ("newer driver", "update the driver"),
    ],
)
def test_what_is_lacking_is_one_sentence_with_the_next_step(driver, monkeypatch, lacking, text):
    if lacking == "driver":
        monkeypatch.setattr(device_module, "load_driver", lambda: None)
    elif lacking == "gpu":
        monkeypatch.setattr(driver, "device_count", lambda: 0)
    elif lacking == "cupy":
        monkeypatch.setattr(device_module.importlib.util, "find_spec", lambda _: None)
    elif lacking == "nvrtc":
        monkeypatch.setattr(toolchain, "nvrtc_version", lambda: None)
    else:
        monkeypatch.setattr(toolchain, "nvrtc_version", lambda: (14, 0))
    reason = CudaDevice.unavailable_reason()
    assert text in reason
    assert "\n" not in reason
    assert ":" in reason
    with pytest.raises(DeviceUnavailableError, match=text):
        CudaDevice()


def test_the_device_of_this_machine_is_found_without_a_context():
    reason = CudaDevice.unavailable_reason()
    assert reason is None or isinstance(reason, str)


def test_the_second_gpu_is_another_device(driver):
    assert CudaDevice(1).limits().name == "Fake GPU 1"
    with pytest.raises(DeviceUnavailableError, match="no GPU 2"):
        CudaDevice(2)


def test_a_fault_while_sampling_ends_the_context_too(device, module):
    plan = LaunchPlan(
        (Buffer("y", "float32", (1,), "output"),), (launch("illegal", PointerArgument("y")),), ("y",)
    )
    with pytest.raises(DeviceError, match="ILLEGAL_ADDRESS"):
        device.sampler(module, plan, [{}])
    assert device.is_lost


def test_the_roofline_has_the_copy_bandwidth(device):
    # The fake driver's copies take a quarter of a millisecond.
    assert device.roofline(["int32"]) == {
        "bandwidth_bytes_per_s": pytest.approx(2 * (1 << 28) / 0.25e-3),
        "operations_per_s": {},
    }


def test_warming_up_makes_the_context(driver):
    before = driver.fake.fake_contexts()
    device = CudaDevice()
    device.warm_up()
    assert driver.fake.fake_contexts() == before + 1
    device.close()


def test_a_fork_of_a_process_that_uses_cuda_is_told_to_spawn(driver, monkeypatch):
    assert not driver.is_forked
    monkeypatch.setattr("os.getpid", lambda: -1)
    assert "spawn" in CudaDevice.unavailable_reason()
    with pytest.raises(DeviceUnavailableError, match="forked"):
        CudaDevice()
