"""Plans become driver calls: parameters, attributes, addresses."""

import ctypes
import re
import struct

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmkernel.devices.cuda.driver import DriverError
from llmkernel.devices.cuda.launcher import PreparedPlan, buffer_bytes, scalar_bytes
from llmkernel.devices.plan import (
    Buffer,
    KernelLaunch,
    LaunchPlan,
    PointerArgument,
    ScalarArgument,
    TensorMapArgument,
)
from llmkernel.errors import LaunchError
from llmkernel.problem.dtypes import DTYPES


def function(driver, name):
    module = driver.handle("cuModuleLoadData", b"\x7fELF")
    return {name: driver.handle("cuModuleGetFunction", module, name.encode())}


def launch(kernel, arguments, *, grid=(1, 1, 1), block=(32, 1, 1), shared=0, cluster=None, cooperative=False):
    return KernelLaunch(kernel, grid, block, shared, cluster, cooperative, tuple(arguments), 7)


def device_array(driver, array):
    address = driver.allocate(array.nbytes)
    ctypes.memmove(address, array.ctypes.data, array.nbytes)
    return address


def read(address, dtype, count):
    nbytes = np.dtype(dtype).itemsize * count
    return np.frombuffer(ctypes.string_at(address, nbytes), dtype)


def test_pointers_are_patched_for_every_call_and_offsets_are_in_elements(driver, limits):
    buffers = (Buffer("x", "float32", (6,), "input"), Buffer("y", "float32", (4,), "output"))
    arguments = (PointerArgument("x", 2), PointerArgument("y"), ScalarArgument("int32", 4))
    plan = LaunchPlan(buffers, (launch("add_one", arguments),), ("y",))
    prepared = PreparedPlan(driver, function(driver, "add_one"), plan, limits)
    for start in (0, 10):
        x = np.arange(start, start + 6, dtype=np.float32)
        places = [device_array(driver, x), driver.allocate(16)]
        prepared.launch(places, 0)
        assert read(places[1], np.float32, 4).tolist() == (x[2:] + 1).tolist()


def test_scalars_are_passed_as_their_own_bytes(driver, limits):
    values = [
        ("float16", 1.5),
        ("bfloat16", -2.0),
        ("float32", float("nan")),
        ("int64", -(2**40)),
        ("bool", True),
        ("complex64", 1 - 2j),
        ("complex128", 3 + 4j),
    ]
    scalars = [ScalarArgument(dtype, value) for dtype, value in values]
    plan = LaunchPlan(
        (Buffer("out", "uint8", (64,), "output"),),
        (launch("dump", (PointerArgument("out"), *scalars)),),
        ("out",),
    )
    out = driver.allocate(64)
    PreparedPlan(driver, function(driver, "dump"), plan, limits).launch([out], 0)
    expected = (
        np.float16(1.5).tobytes()
        + np.array(-2.0, ml_dtypes.bfloat16).tobytes()
        + np.float32("nan").tobytes()
        + struct.pack("<q?", -(2**40), True)
        + np.complex64(1 - 2j).tobytes()
        + np.complex128(3 + 4j).tobytes()
    )
    assert ctypes.string_at(out, len(expected)) == expected


@pytest.mark.parametrize(
    ("dtype", "value"), [("int32", 2**31), ("uint8", -1), ("uint64", 2**64), ("int8", 1.5), ("int16", 40000)]
)
def test_a_value_that_does_not_fit_is_an_error_with_the_line(dtype, value):
    with pytest.raises(LaunchError, match="does not fit") as caught:
        scalar_bytes(ScalarArgument(dtype, value), 3)
    assert caught.value.line == 3


@given(st.sampled_from([n for n, d in DTYPES.items() if d.kind in "iu"]), st.data())
def test_integers_keep_every_bit(name, data):
    dtype = DTYPES[name].numpy
    info = np.iinfo(dtype)
    value = data.draw(st.integers(int(info.min), int(info.max)))
    assert np.frombuffer(scalar_bytes(ScalarArgument(name, value)), dtype)[0] == value


@given(st.floats(width=32))
def test_floats_keep_every_bit(value):
    assert scalar_bytes(ScalarArgument("float32", value)) == np.float32(value).tobytes()


def test_large_shared_memory_cluster_and_cooperation_reach_the_driver(driver, limits):
    big = launch("static_shared", (), grid=(32, 1, 1), shared=20000, cluster=(16, 1, 1))
    coop = launch("static_shared", (), cooperative=True)
    plan = LaunchPlan((), (big, coop), ())
    PreparedPlan(driver, function(driver, "static_shared"), plan, limits).launch((), 0)
    text = driver.record()
    assert "attribute 8=20000;" in text  # 40000 static + 20000 dynamic pass 48 KiB together
    assert "attribute 14=1;" in text
    assert "attribute id=4 16,1,1;" in text
    assert re.search(r"attribute id=2 1,", text)


def test_small_launches_set_no_attribute(driver, limits):
    plan = LaunchPlan((), (launch("add_nothing", (), shared=4096),), ())
    PreparedPlan(driver, function(driver, "add_nothing"), plan, limits).launch((), 0)
    assert "attribute" not in driver.record().replace("attributes=0", "")


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"block": (2048, 1, 1)}, "threads a block"),
        ({"shared": 240000}, "shared memory"),
        ({"cluster": (3, 1, 1), "grid": (4, 1, 1)}, "no multiple of the cluster"),
        ({"cluster": (32, 1, 1), "grid": (32, 1, 1)}, "blocks a cluster"),
        ({"cooperative": True, "grid": (100000, 1, 1)}, "cooperative"),
    ],
)
def test_limits_are_errors_with_the_line(driver, limits, changes, text):
    plan = LaunchPlan((), (launch("k", (), **changes),), ())
    with pytest.raises(LaunchError, match=text) as caught:
        PreparedPlan(driver, function(driver, "k"), plan, limits)
    assert caught.value.line == 7


def test_zeroed_buffers_are_zeroed_before_every_call(driver, limits):
    plan = LaunchPlan((Buffer("y", "int32", (3,), "output", is_zeroed=True),), (launch("k", ()),), ("y",))
    prepared = PreparedPlan(driver, function(driver, "k"), plan, limits)
    address = device_array(driver, np.array([1, 2, 3], np.int32))
    prepared.launch([address], 0)
    assert not read(address, np.int32, 3).any()


def test_a_tensor_map_is_encoded_innermost_axis_first(driver, limits):
    buffers = (Buffer("a", "bfloat16", (5, 7, 64), "input"), Buffer("o", "uint64", (16,), "output"))
    arguments = (TensorMapArgument("a", (1, 4, 64), 128), PointerArgument("o"))
    plan = LaunchPlan(buffers, (launch("describe", arguments),), ("o",))
    a, out = driver.allocate(5 * 7 * 64 * 2), driver.allocate(128)
    PreparedPlan(driver, function(driver, "describe"), plan, limits).launch([a, out], 0)
    words = read(out, np.uint64, 16).tolist()
    assert words[:4] == [9, 3, 3, a]
    assert words[4:7] == [64, 7, 5]
    assert words[8:10] == [128, 7 * 128]
    assert words[12:15] == [64, 4, 1]


@pytest.mark.parametrize(
    ("shape", "box", "swizzle", "text"),
    [
        ((8, 12), (4, 8), 0, "axis 0 has a stride of 24 bytes"),
        ((8, 64), (4, 3), 0, "a multiple of 16"),
        ((8, 64), (4, 64), 32, "swizzle=32 takes at most 32"),
        ((8, 1024), (1, 512), 0, "1 to 256"),
        ((8, 64), (4,), 0, "the box has 1 axes and the array 2"),
        ((0, 64), (4, 64), 0, "axis 0 has size 0"),
    ],
)
def test_what_tma_cannot_describe_is_named(driver, limits, shape, box, swizzle, text):
    buffers = (Buffer("a", "float16", shape, "input"),)
    plan = LaunchPlan(buffers, (launch("k", (TensorMapArgument("a", box, swizzle),)),), ())
    with pytest.raises(LaunchError, match=text):
        PreparedPlan(driver, function(driver, "k"), plan, limits)


def test_a_tensor_map_of_a_view_has_the_strides_of_the_view(driver, limits):
    buffers = (
        Buffer("a", "float32", (5, 8), "input", strides=(100, 1)),
        Buffer("o", "uint64", (16,), "output"),
    )
    arguments = (TensorMapArgument("a", (4, 8)), PointerArgument("o"))
    plan = LaunchPlan(buffers, (launch("describe", arguments),), ("o",))
    a, out = driver.allocate(4 * 500), driver.allocate(128)
    PreparedPlan(driver, function(driver, "describe"), plan, limits).launch([a, out], 0)
    words = read(out, np.uint64, 16).tolist()
    assert words[4:6] == [8, 5]
    assert words[8] == 400


def test_a_misaligned_tensor_map_is_refused_at_the_launch(driver, limits):
    buffers = (Buffer("a", "float16", (8, 64), "input"),)
    plan = LaunchPlan(buffers, (launch("k", (TensorMapArgument("a", (4, 64)),)),), ())
    prepared = PreparedPlan(driver, function(driver, "k"), plan, limits)
    with pytest.raises(LaunchError, match="refused"):
        prepared.launch([driver.allocate(2048) + 2], 0)


def test_an_error_of_the_driver_carries_its_name(driver, limits):
    plan = LaunchPlan((), (launch("illegal", ()), launch("illegal", ())), ())
    with pytest.raises(DriverError) as caught:
        PreparedPlan(driver, function(driver, "illegal"), plan, limits).launch((), 0)
    assert caught.value.name == "CUDA_ERROR_ILLEGAL_ADDRESS"
    assert caught.value.is_context_lost


@pytest.mark.parametrize(
    ("shape", "strides", "nbytes"),
    [((3, 4), None, 48), ((), None, 4), ((0, 4), None, 0), ((3, 4), (1, 3), 48), ((3, 4), (10, 2), 108)],
)
def test_strides_decide_how_much_memory_a_buffer_has(shape, strides, nbytes):
    assert buffer_bytes(Buffer("x", "float32", shape, "input", strides=strides)) == nbytes
