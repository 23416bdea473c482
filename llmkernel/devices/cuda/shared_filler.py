"""Fills the shared memory of every multiprocessor with a pattern, so that a kernel that reads what it never wrote is seen."""

from __future__ import annotations

from llmkernel.devices.base import DeviceLimits
from llmkernel.devices.cuda.compiler import compile_cached, load_fresh
from llmkernel.devices.cuda.driver import Driver
from llmkernel.devices.cuda.launcher import PreparedPlan
from llmkernel.devices.plan import KernelLaunch, LaunchPlan, ScalarArgument

# Blocks a multiprocessor: each takes all of its shared memory, so they come one after the other, and several rounds
# reach every multiprocessor even where one of them is busy.
_ROUNDS = 4

SOURCE = """
extern __shared__ unsigned int filled[];
extern "C" __global__ void fill_shared(unsigned int seed, int words) {
  for (int i = threadIdx.x; i < words; i += blockDim.x) {
    unsigned int h = (seed + i) * 2654435761u;
    // Every third word is a NaN as a float and as half of a double; the rest are random bits.
    filled[i] = i % 3 == 0 ? 0x7fffffffu : h ^ (h >> 15);
  }
  __syncthreads();
  volatile unsigned int* kept = filled;
  if (kept[(seed + threadIdx.x) % words] == 0x01234567u && words < 0) __trap();
}
"""


class SharedFiller:
    """The filler, loaded in the current context."""

    def __init__(self, driver: Driver, limits: DeviceLimits) -> None:
        self._driver = driver
        self._limits = limits
        binary = compile_cached(SOURCE, ("fill_shared",), limits.arch).binary
        self._loaded = load_fresh(driver, binary)

    def fill(self, seed: int, stream: int) -> None:
        """Dirty all shared memory, in stream order."""
        nbytes = self._limits.max_shared_bytes // 4 * 4
        launch = KernelLaunch(
            kernel="fill_shared",
            grid=(_ROUNDS * self._limits.num_sms, 1, 1),
            block=(256, 1, 1),
            shared_bytes=nbytes,
            cluster=None,
            is_cooperative=False,
            arguments=(ScalarArgument("uint32", seed & 0xFFFFFFFF), ScalarArgument("int32", nbytes // 4)),
            line=0,
        )
        plan = LaunchPlan((), (launch,), ())
        PreparedPlan(self._driver, self._loaded.functions, plan, self._limits).launch((), stream)
