"""The package's own helper kernels: dirty shared memory, hold a stream back, poison memory."""

from __future__ import annotations

import os

from llmkernel.devices.base import DeviceLimits
from llmkernel.devices.cuda.compiler import compile_cached, load_fresh
from llmkernel.devices.cuda.driver import Driver
from llmkernel.devices.cuda.launcher import PreparedPlan
from llmkernel.devices.plan import KernelLaunch, LaunchPlan, ScalarArgument

SOURCE = """
extern __shared__ unsigned int filled[];

__device__ unsigned int scramble(unsigned int x) {
  x *= 2654435761u;
  return x ^ (x >> 15);
}

extern "C" __global__ void fill_shared(unsigned int seed, int words) {
  for (int i = threadIdx.x; i < words; i += blockDim.x) {
    // Every third word is a NaN as a float and as half of a double; the rest are random bits.
    filled[i] = i % 3 == 0 ? 0x7fffffffu : scramble(seed + i);
  }
  __syncthreads();
  // Never true, but the compiler cannot know: without a reader it would drop the stores.
  if (words < 0 && filled[threadIdx.x] == seed) __trap();
}

extern "C" __global__ void hold(unsigned long long nanoseconds) {
  unsigned long long start, now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(start));
  do {
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  } while (now - start < nanoseconds);
}
"""
_KERNELS = ("fill_shared", "hold")
# Blocks a multiprocessor. A block takes all of its shared memory, so they come one after the other, and
# several rounds reach every multiprocessor even where one of them is busy.
_ROUNDS = 4


class Support:
    """The helper kernels, loaded in the current context."""

    def __init__(self, driver: Driver, limits: DeviceLimits) -> None:
        self._driver = driver
        self._limits = limits
        self._prepared: dict[tuple[str, tuple[ScalarArgument, ...]], PreparedPlan] = {}
        self._loaded = load_fresh(driver, compile_cached(SOURCE, _KERNELS, limits.arch).binary)

    def fill_shared(self, seed: int, stream: int) -> None:
        """Dirty the shared memory of every multiprocessor, in stream order."""
        nbytes = self._limits.max_shared_bytes // 4 * 4
        arguments = (ScalarArgument("uint32", seed & 0xFFFFFFFF), ScalarArgument("int32", nbytes // 4))
        self._launch("fill_shared", _ROUNDS * self._limits.num_sms, 256, nbytes, arguments, stream)

    def hold(self, nanoseconds: int, stream: int) -> None:
        """Keep a stream busy for a while, so that what is queued behind follows without gaps."""
        self._launch("hold", 1, 1, 0, (ScalarArgument("uint64", nanoseconds),), stream)

    def _launch(
        self,
        kernel: str,
        grid: int,
        block: int,
        shared: int,
        arguments: tuple[ScalarArgument, ...],
        stream: int,
    ) -> None:
        key = (kernel, arguments)
        if key not in self._prepared:
            launch = KernelLaunch(kernel, (grid, 1, 1), (block, 1, 1), shared, None, False, arguments, 0)
            plan = LaunchPlan((), (launch,), ())
            self._prepared[key] = PreparedPlan(self._driver, self._loaded.functions, plan, self._limits)
        self._prepared[key].launch((), stream)


def poison_byte(draw: int) -> int:
    """Return a byte that outputs are filled with before a timed launch; another one for each draw."""
    return (0x5A + 37 * draw + os.getpid()) & 0xFF
