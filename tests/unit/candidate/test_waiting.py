"""Blocks that wait for other blocks are refused; loops that end by themselves are not."""

import pytest

from llmkernel.candidate.rules import check_rules
from llmkernel.errors import RejectedError

SIGNATURE = "//! f(x: int32[N]) -> y: int32[N]\n"
LAUNCH = "//! f<<<N, 32>>>(x, y, N)\n"
KERNEL = "__device__ unsigned arrived;\n__global__ void f(const int* x, volatile int* y, int N) {{ {} }}\n"


def source(body, launch=LAUNCH):
    return SIGNATURE + launch + KERNEL.format(body)


WAITS = {
    "a flag": "while (y[0] == 0) {}",
    "a flag through a pointer": "volatile int* flag = y; while (!*flag);",
    "an atomic that reads": "atomicAdd(&arrived, 1u); while (atomicAdd(&arrived, 0u) < gridDim.x) __nanosleep(20);",
    "a compare and swap that reads": "while (atomicCAS(&arrived, 0u, 0u) != gridDim.x) {}",
    "a loaded copy": "int seen = 0; do { seen = y[0]; } while (seen == 0);",
    "a break": "for (;;) { if (y[0]) break; }",
    "a loop that counts its turns": "int turns = 0; while (y[0] == 0) ++turns;",
    "fences": "while (y[N - 1] == 0) { __threadfence(); }",
    "a load around the cache": "while (__ldcg((const int*)y) == 0) {}",
    "another thread's turn": "if (threadIdx.x == 0) { while (y[blockIdx.x] == 0) {} } __syncthreads();",
}
ENDS = {
    "a lock": "while (atomicCAS(&arrived, 0u, 1u) != 0u) {} y[0] = 1; atomicExch(&arrived, 0u);",
    "an update by compare and swap": "unsigned old = arrived, seen; "
    "do { seen = old; old = atomicCAS(&arrived, seen, seen + 1); } while (seen != old);",
    "a list": "int i = blockIdx.x; while (x[i] >= 0) i = x[i]; y[blockIdx.x] = i;",
    "a probe": "int i = 0; for (; x[i] != 7; ++i) {} y[0] = i;",
    "a probe that steps in its body": "int i = 0; while (x[i] != 7) { i = (i + 1) % N; } y[0] = i;",
    "a search": "int lo = 0, hi = N; "
    "while (lo < hi) { int mid = (lo + hi) / 2; if (x[mid] < 3) lo = mid + 1; else hi = mid; }",
    "work": "while (y[0] < 10) y[0] = y[0] + 1;",
    "a block's own flag": "__shared__ volatile int flag; if (threadIdx.x == 0) flag = 1; while (flag == 0) {}",
    "lower numbers, in the order in which blocks start": "int number = atomicAdd(&arrived, 1u); "
    "if (number > 0) while (y[number - 1] == 0) {} y[number] = 1;",
    "data": "for (int i = 0; i < N && x[i] > 0; ++i) y[i] = x[i];",
}


@pytest.mark.parametrize("body", WAITS.values(), ids=WAITS.keys())
def test_a_wait_between_blocks_is_refused_with_its_line(body):
    with pytest.raises(RejectedError) as caught:
        check_rules(source(body))
    assert caught.value.rule_name == "spin-wait"
    assert caught.value.line == 4
    assert "cooperative" in str(caught.value)


@pytest.mark.parametrize("body", ENDS.values(), ids=ENDS.keys())
def test_a_loop_that_ends_by_itself_is_no_wait(body):
    check_rules(source(body))


def test_a_cooperative_launch_runs_all_blocks_at_the_same_time():
    body = WAITS["an atomic that reads"]
    check_rules(source(body, "//! f<<<N, 32, cooperative>>>(x, y, N)\n"))
    twice = "//! f<<<N, 32, cooperative>>>(x, y, N)\n" + LAUNCH
    with pytest.raises(RejectedError):
        check_rules(source(body, twice))
