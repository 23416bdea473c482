"""What each figure of a profile means and what to do about it, one or two sentences each.

The reasons that warps wait for are those of Nsight Compute's documentation ("Warp Stall Reasons").
"""

from __future__ import annotations

# Reason: what the warp waits for, and what to do about it.
_STALLS = {
    "barrier": (
        "other threads at a barrier",
        "Fewer __syncthreads(), or work that is spread evenly over the block.",
    ),
    "branch_resolving": (
        "the target of a branch",
        "Fewer branches in the inner loop: unroll or predicate it.",
    ),
    "dispatch_stall": ("the dispatcher", "Rare; look at what comes next in Nsight Compute itself."),
    "drain": ("stores at the end of the kernel", "Store less often and wider; let each thread do more."),
    "imc_miss": ("constants that are not cached", "Index constants by a value that is equal over the warp."),
    "lg_throttle": (
        "the full queue to global memory",
        "Fewer and wider accesses: 16 bytes a thread at a time.",
    ),
    "long_scoreboard": (
        "data from global or local memory",
        "Ask for it earlier (cp.async, several loads in flight), reuse it in shared memory, or run more warps.",
    ),
    "math_pipe_throttle": ("busy arithmetic units", "Less arithmetic, or tensor cores for products."),
    "membar": (
        "a memory fence",
        "Fewer fences, and narrower ones: __threadfence_block() where a block suffices.",
    ),
    "mio_throttle": (
        "the full queue to shared memory and special functions",
        "Fewer and wider accesses to shared memory; fewer exp, sin and divisions.",
    ),
    "no_instruction": (
        "instructions that are not cached",
        "Shorter code: less unrolling, fewer inlined copies.",
    ),
    "not_selected": (
        "its turn: another warp was ready too",
        "There is no stall worth removing: enough warps are ready.",
    ),
    "short_scoreboard": (
        "shared memory or special functions",
        "Remove bank conflicts (pad or swizzle), and keep values in registers.",
    ),
    "sleeping": ("__nanosleep()", "Poll with shorter sleeps, or not at all."),
    "tex_throttle": ("the full texture queue", "Use ordinary loads."),
    "wait": (
        "the latency of the instruction before",
        "More independent instructions a thread: unroll, or let each thread compute several results.",
    ),
}
_HIGH, _MIDDLE = 75.0, 40.0
_MANY_REGISTERS = 128


def stall_words(reason: str) -> tuple[str, str]:
    """Return what a warp waits for, in words, and what to do about it."""
    return _STALLS.get(reason, (reason.replace("_", " "), "Look it up in Nsight Compute's documentation."))


def memory_advice(percent: float) -> str:
    """Return what DRAM throughput in percent of its peak means."""
    if percent >= _HIGH:
        return "Memory is the limit: only fewer bytes help (fuse, narrower dtypes, reuse on chip)."
    if percent >= _MIDDLE:
        return "Memory is used well; 16-byte coalesced accesses and more of them in flight get the rest."
    return "Memory is not the limit, or it is asked too slowly: see what warps wait for."


def compute_advice(percent: float) -> str:
    """Return what the multiprocessors' throughput in percent of its peak means."""
    if percent >= _HIGH:
        return "Arithmetic is the limit: fewer operations, or tensor cores for products."
    if percent >= _MIDDLE:
        return "The multiprocessors are busy, but not full; more independent work a thread may help."
    return "The multiprocessors mostly wait: this kernel is not bound by arithmetic."


def occupancy_advice(percent: float) -> str:
    """Return what occupancy in percent means."""
    if percent >= _HIGH:
        return "Enough warps are resident to hide latency."
    if percent >= _MIDDLE:
        return "Usually enough; if warps wait for memory, let more be resident (fewer registers, less shared memory)."
    return (
        "Few warps are resident: fewer registers or less shared memory a block, smaller blocks or more of them, "
        "unless each thread has much independent work."
    )


def hits_advice(percent: float) -> str:
    """Return what the L2 hit rate in percent means."""
    if percent >= _HIGH:
        return "Most of what is asked for is in L2 already; shared memory or registers would keep it closer still."
    if percent >= _MIDDLE:
        return "Part of the data is used again in time; blocks that share data should run side by side."
    return "Data comes from DRAM: right for a stream that is read once, else tile so that it is used again."


def bandwidth_advice(percent: float) -> str:
    """Return what the achieved bandwidth in percent of a copy's means."""
    if percent >= _HIGH:
        return "Near the speed of a copy: only fewer bytes help (fuse, narrower dtypes)."
    if percent >= _MIDDLE:
        return "Memory is used well; 16-byte coalesced accesses and more of them in flight get the rest."
    return "Far from the speed of a copy: bound by arithmetic or latency, or the arrays are small."


def registers_advice(count: int) -> str:
    """Return what the number of registers a thread means."""
    if count > _MANY_REGISTERS:
        return "Many: they limit how many warps are resident; __launch_bounds__ or smaller tiles lower it."
    return "They leave room for other warps."


def spills_advice(nbytes: int) -> str:
    """Return what bytes of register spills mean."""
    if nbytes:
        return (
            "Registers ran out and values go through memory: smaller tiles, or fewer values alive at a time."
        )
    return "None: everything that is alive fits into registers."
