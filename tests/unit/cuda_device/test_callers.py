"""Accepted kernels as callables, over the fake driver."""

import threading

import numpy as np
import pytest
import torch

from llmkernel.candidate.candidate import parse_candidate
from llmkernel.candidate.domain import VerifiedArgument, VerifiedDomain
from llmkernel.devices.cuda.caller import make_caller
from llmkernel.devices.cuda.refusal import alignment_class, scalar_key
from llmkernel.devices.cuda.results import ConvertedResults, to_numpy, to_torch
from llmkernel.devices.cuda.torch_caller import TorchCaller
from llmkernel.errors import BindingError, UsageError

ADD_ONE = """
//! add_one(x: float32[N]) -> y: float32[N]
//! add_one<<<ceil_div(N, 256), 256>>>(x, y, N)
extern "C" __global__ void add_one(const float* x, float* y, int n) { }
"""
TWICE = """
//! twice(x: float32[N]) -> y: float32[N]
//! scratch t: float32[N]
//! add_one<<<1, 256>>>(x, t, N)
//! add_one<<<1, 256>>>(t, y, N)
//! swap(t, y)
extern "C" __global__ void add_one(const float* x, float* y, int n) { }
"""
IN_PLACE = """
//! in_place(inout x: float32[N], n: int32)
//! add_one<<<1, 256>>>(x, x, n)
extern "C" __global__ void add_one(float* x, float* y, int n) { }
"""


def domain(kind, *arguments, on_gpu=False, returns_tuple=False, result=None):
    verified = tuple(
        VerifiedArgument(
            name, "scalar" if rank is None else kind, dtype, rank or 0, on_gpu and rank is not None
        )
        for name, dtype, rank in arguments
    )
    return VerifiedDomain(verified, result or kind, on_gpu, returns_tuple, "cuda")


X = ("x", "float32", 1)


class GpuTensor(torch.Tensor):
    """A tensor in host memory that says that it is on a GPU: the fake driver's device memory is host memory."""

    def get_device(self):
        return 0


def on_gpu(values, dtype=torch.float32):
    return torch.as_tensor(values, dtype=dtype).as_subclass(GpuTensor)


@pytest.fixture
def torch_caller(driver, monkeypatch):
    monkeypatch.setattr(torch._C, "_cuda_getCurrentRawStream", lambda _: 0, raising=False)

    def make(source, *arguments, **options):
        caller = make_caller(parse_candidate(source), domain("torch", *arguments, on_gpu=True, **options))
        assert isinstance(caller, TorchCaller)
        caller._has_one_gpu, caller._devices, caller._current_device = True, ["cpu"], lambda: 0
        caller._empty_here = None
        return caller

    return make


def test_numpy_arrays_are_copied_there_and_back(driver):
    call = make_caller(parse_candidate(ADD_ONE), domain("numpy", X))
    for n in (3, 5, 3, 0):
        x = np.arange(n, dtype=np.float32)
        y = call(x)
        assert y.dtype == np.float32
        assert y.tolist() == (x + 1).tolist()


def test_numpy_views_are_taken_and_in_place_writes_back(driver):
    call = make_caller(parse_candidate(ADD_ONE), domain("numpy", X))
    assert call(np.arange(6, dtype=np.float32)[::2]).tolist() == [1, 3, 5]
    in_place = make_caller(parse_candidate(IN_PLACE), domain("numpy", X, ("n", "int32", None)))
    x = np.zeros(6, np.float32)
    assert in_place(x[::2], 3) is None
    assert x.tolist() == [1, 0, 1, 0, 1, 0]


def test_torch_tensors_in_host_memory_give_torch_tensors(driver):
    call = make_caller(parse_candidate(ADD_ONE), domain("torch", X))
    assert torch.equal(call(torch.arange(4.0)), torch.arange(4.0) + 1)


def test_a_scalar_result_is_a_scalar_and_a_tuple_a_tuple(driver):
    source = ADD_ONE.replace("y: float32[N]", "y: float32").replace("(x, y, N)", "(x, y, 1)")
    call = make_caller(parse_candidate(source), domain("numpy", X, result="scalar"))
    assert call(np.ones(1, np.float32)) == 2
    call = make_caller(parse_candidate(ADD_ONE), domain("numpy", X, returns_tuple=True))
    (y,) = call(np.ones(1, np.float32))
    assert y.tolist() == [2]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ((), "count"),
        ((np.ones(2, np.float64),), "dtype"),
        ((np.ones((2, 2), np.float32),), "rank"),
        ((np.ones(2, ">f4"),), "dtype"),
        (([1.0, 2.0],), "kind"),
        ((torch.ones(2),), "kind"),
    ],
)
def test_numpy_refusals_name_the_reason(driver, arguments, reason):
    call = make_caller(parse_candidate(ADD_ONE), domain("numpy", X))
    with pytest.raises(BindingError) as caught:
        call(*arguments)
    assert caught.value.reason == reason
    assert caught.value.next_step


def test_torch_on_the_gpu_launches_without_copies_and_reuses_its_plan(torch_caller, driver):
    call = torch_caller(ADD_ONE, X)
    for n in (4, 4, 7, 4, 0):
        x = on_gpu(np.arange(n))
        assert torch.equal(call(x), torch.arange(n) + 1.0)
    assert len(call._cache.calls) == 3
    assert driver.record().count("load;") == 1


def test_tensors_like_the_last_are_launched_in_one_step_and_others_still_are_looked_at(
    torch_caller, driver, monkeypatch
):
    guards = torch._C._dynamo.guards
    monkeypatch.setattr(guards, "_empty_strided_cuda", guards._empty_strided_cpu, raising=False)
    call = torch_caller(ADD_ONE, X)
    call._may_be_fast = True
    bound = []
    call.on_fast = bound.append
    x = on_gpu(np.arange(4))
    call(x)
    assert not bound
    call(x)
    (bind,) = bound
    others = []
    fast = bind(lambda *given, **named: others.append((given, named)))
    for start in range(3):
        y = on_gpu(np.arange(4) + start)
        assert torch.equal(fast(None, y), torch.arange(4) + start + 1.0)
        assert torch.equal(call(y), torch.arange(4) + start + 1.0)
    assert not others
    longer, double = on_gpu(np.arange(5)), on_gpu(np.arange(4), torch.float64)
    for given in ((longer,), (double,), (x, x), (), ("x",), (x.requires_grad_(),)):
        fast(None, *given)
        assert others.pop() == (given, {})
    fast(None, x=longer)
    assert others.pop() == ((), {"x": longer})
    assert torch.equal(call(longer), torch.arange(5) + 1.0)
    with pytest.raises(BindingError):
        call(x)


def test_a_kernel_whose_buffers_do_not_come_first_has_no_shorter_way(torch_caller, monkeypatch):
    guards = torch._C._dynamo.guards
    monkeypatch.setattr(guards, "_empty_strided_cuda", guards._empty_strided_cpu, raising=False)
    # Parameters in another order than the plan's buffers: what the shorter way writes would be swapped.
    source = ADD_ONE.replace("(x, y, N)", "(x + 0, y + 0, N)").replace("y: float32[N]", "y: float32[N + 1]")
    source = source.replace("y + 0", "y + 1")
    call = torch_caller(source, X)
    call._may_be_fast = True
    x = on_gpu(np.arange(4))
    for _ in range(3):
        assert torch.equal(call(x)[1:], torch.arange(4) + 1.0)
    assert call._fast is None


def test_a_plan_of_aligned_addresses_is_not_reused_for_others_whatever_the_reference_calls_its_arguments(
    torch_caller,
):
    source = ADD_ONE.replace(
        "//! add_one<<<",
        "//! when aligned(x, 16):\n//!     add_one<<<1, 256>>>(x, y, N)\n//! otherwise:\n//!     add_one<<<",
    )
    call = torch_caller(source, ("values", "float32", 1))
    values = on_gpu(np.arange(9))
    assert torch.equal(call(values[:8]), torch.arange(8) + 1.0)
    assert torch.equal(call(values[1:]), torch.arange(1, 9) + 1.0)
    assert len(call._cache.calls) == 2


def test_torch_results_may_lie_in_scratch(torch_caller):
    call = torch_caller(TWICE, X)
    assert call(on_gpu([1, 2, 3])).tolist() == [2, 3, 4]


def test_results_of_another_kind_or_place_are_converted(torch_caller, driver):
    source = ADD_ONE.replace("y: float32[N]", "y: float32").replace("(x, y, N)", "(x, y, 1)")
    for kind, expected in (("scalar", float), ("numpy", np.ndarray), ("torch", torch.Tensor)):
        verified = VerifiedDomain(
            (VerifiedArgument("x", "torch", "float32", 1, True),), kind, False, False, "cuda"
        )
        call = make_caller(parse_candidate(source), verified)
        assert isinstance(call, ConvertedResults)
        inner = call._call
        inner._has_one_gpu, inner._devices, inner._current_device = True, ["cpu"], lambda: 0
        inner._empty_here = None
        result = call(on_gpu([1.0]))
        assert isinstance(result, expected)
        assert result == 2


def test_bfloat16_survives_the_way_through_numpy():
    tensor = torch.tensor([1.5, -2.0], dtype=torch.bfloat16)
    assert torch.equal(to_torch(to_numpy(tensor)), tensor)
    conjugated = torch.tensor([1 + 2j]).conj()
    assert to_numpy(conjugated).tolist() == [1 - 2j]


def test_torch_in_place_tells_autograd(torch_caller):
    call = torch_caller(IN_PLACE, X, ("n", "int32", None))
    x = on_gpu([1, 2, 3])
    version = x._version
    assert call(x, 3) is None
    assert x.tolist() == [2, 3, 4]
    assert x._version == version + 1


def test_an_array_that_is_changed_may_share_memory_with_no_other(torch_caller):
    source = """
//! into(inout x: float32[N], y: float32[N])
//! add_one<<<1, 256>>>(y, x, N)
extern "C" __global__ void add_one(const float* x, float* y, int n) { }
"""
    call = torch_caller(source, X, ("y", "float32", 1))
    memory = torch.zeros(10)
    x, y, near = (memory[a:b].as_subclass(GpuTensor) for a, b in ((0, 4), (4, 8), (3, 7)))
    call(x, y)
    for other in (x, near):
        with pytest.raises(BindingError, match="shares memory with `y`"):
            call(x, other)


def test_torch_refusals_name_the_reason(torch_caller):
    call = torch_caller(ADD_ONE, X)
    good = on_gpu([1, 2])
    cases = {
        "count": (good, good),
        "device": (torch.ones(2),),
        "kind": (np.ones(2, np.float32),),
    }
    for reason, arguments in cases.items():
        with pytest.raises(BindingError) as caught:
            call(*arguments)
        assert caught.value.reason == reason
        assert caught.value.next_step


def test_calls_from_many_threads_do_not_mix_addresses(torch_caller):
    call = torch_caller(ADD_ONE, X)
    wrong = []

    def work(k):
        x = on_gpu([k] * 64)
        wrong.extend(k for _ in range(100) if call(x).tolist() != [k + 1.0] * 64)

    workers = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong


def test_a_thread_without_a_context_gets_the_right_one(torch_caller, driver):
    call = torch_caller(ADD_ONE, X)
    driver.fake.fake_refuse_without_context(1)
    assert call(on_gpu([1])).tolist() == [2]


def test_arrays_in_different_places_are_refused_when_the_caller_is_made(driver):
    mixed = VerifiedDomain(
        (VerifiedArgument("x", "torch", "float32", 1, True), VerifiedArgument("y", "numpy", "float32", 1)),
        "torch",
        True,
        False,
        "cuda",
    )
    with pytest.raises(UsageError, match="one kind"):
        make_caller(parse_candidate(ADD_ONE), mixed)


def test_the_key_of_a_scalar_tells_equal_values_apart():
    argument = VerifiedArgument("a", "scalar", "float32", 0)
    keys = {scalar_key(argument, v) for v in (0, 0.0, -0.0, False, 1, 1.0, True, 1j, 0j, complex(0.0, -0.0))}
    assert len(keys) == 10
    assert scalar_key(argument, float("nan")) == scalar_key(argument, float("nan"))
    assert scalar_key(argument, np.float64(2.5)) == scalar_key(argument, 2.5)
    with pytest.raises(BindingError) as caught:
        scalar_key(argument, "2.5")
    assert caught.value.reason == "kind"


@pytest.mark.parametrize("address", [0, 256, 4096, 12288 + 16, 4, 0x7F0000001000 + 2])
def test_the_alignment_class_answers_alignment_as_the_address_does(address):
    kept = alignment_class(address)
    assert all((kept % n == 0) == (address % n == 0) for n in (2, 4, 8, 16, 128, 256, 4096))
