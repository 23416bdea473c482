// Barriers, fences, and the collectives of a warp.
#pragma once

#include "abi.h"
#include "language.h"

CPU_DEVICE_INLINE void __syncthreads(CPU_DEVICE_LINE) { cpu_device_barrier(line); }
CPU_DEVICE_INLINE int __syncthreads_count(int predicate, CPU_DEVICE_LINE) {
    return cpu_device_barrier_vote(cpu_device::Vote::count, predicate, line);
}
CPU_DEVICE_INLINE int __syncthreads_and(int predicate, CPU_DEVICE_LINE) {
    return cpu_device_barrier_vote(cpu_device::Vote::all, predicate, line);
}
CPU_DEVICE_INLINE int __syncthreads_or(int predicate, CPU_DEVICE_LINE) {
    return cpu_device_barrier_vote(cpu_device::Vote::any, predicate, line);
}
CPU_DEVICE_INLINE void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
// The threads of a block share an OS thread: only the compiler must not reorder. Checked mode tells the two by the order.
CPU_DEVICE_INLINE void __threadfence_block() { __atomic_thread_fence(__ATOMIC_ACQ_REL); }
CPU_DEVICE_INLINE void __threadfence_system() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
CPU_DEVICE_INLINE void __nanosleep(unsigned) { cpu_device_yield(); }

namespace cpu_device {

// Values travel between lanes as 64 bits.
template <class T>
CPU_DEVICE_INLINE u64 pack(T value) {
    static_assert(sizeof(T) <= 8, "a warp collective takes values of at most 8 bytes");
    u64 bits = 0;
    __builtin_memcpy(&bits, &value, sizeof(T));
    return bits;
}

template <class T>
CPU_DEVICE_INLINE T unpack(u64 bits) {
    T value;
    __builtin_memcpy(&value, &bits, sizeof(T));
    return value;
}

template <class T>
CPU_DEVICE_INLINE T shuffle(u32 mask, T value, u32 source, unsigned line) {
    return unpack<T>(cpu_device_collective(mask, Collective::shuffle, pack(value), source, line));
}

template <class T>
CPU_DEVICE_INLINE T reduce(u32 mask, Collective operation, T value, unsigned line) {
    return (T)cpu_device_collective(mask, operation, (u32)value, 0, line);
}

}  // namespace cpu_device

CPU_DEVICE_INLINE void __syncwarp(unsigned mask = 0xffffffffu, CPU_DEVICE_LINE) {
    cpu_device_collective(mask, cpu_device::Collective::sync, 0, 0, line);
}
CPU_DEVICE_INLINE unsigned __activemask(CPU_DEVICE_LINE) { return cpu_device_active_mask(line); }

// A lane that would read outside its segment of `width` lanes reads itself.
template <class T>
CPU_DEVICE_INLINE T __shfl_sync(unsigned mask, T value, int source, int width = 32, CPU_DEVICE_LINE) {
    const unsigned lane = cpu_device_thread->lane, segment = lane & ~(width - 1u);
    return cpu_device::shuffle(mask, value, segment | (source & (width - 1u)), line);
}
template <class T>
CPU_DEVICE_INLINE T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32, CPU_DEVICE_LINE) {
    const unsigned lane = cpu_device_thread->lane, segment = lane & ~(width - 1u);
    return cpu_device::shuffle(mask, value, lane >= segment + delta ? lane - delta : lane, line);
}
template <class T>
CPU_DEVICE_INLINE T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32, CPU_DEVICE_LINE) {
    const unsigned lane = cpu_device_thread->lane, end = (lane & ~(width - 1u)) + width;
    return cpu_device::shuffle(mask, value, lane + delta < end ? lane + delta : lane, line);
}
template <class T>
CPU_DEVICE_INLINE T __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32, CPU_DEVICE_LINE) {
    const unsigned lane = cpu_device_thread->lane, end = (lane & ~(width - 1u)) + width, source = lane ^ bits;
    return cpu_device::shuffle(mask, value, source < end ? source : lane, line);
}

CPU_DEVICE_INLINE unsigned __ballot_sync(unsigned mask, int predicate, CPU_DEVICE_LINE) {
    return (unsigned)cpu_device_collective(mask, cpu_device::Collective::ballot, predicate != 0, 0, line);
}
CPU_DEVICE_INLINE int __any_sync(unsigned mask, int predicate, CPU_DEVICE_LINE) {
    return __ballot_sync(mask, predicate, line) != 0;
}
CPU_DEVICE_INLINE int __all_sync(unsigned mask, int predicate, CPU_DEVICE_LINE) {
    return __ballot_sync(mask, !predicate, line) == 0;
}
template <class T>
CPU_DEVICE_INLINE unsigned __match_any_sync(unsigned mask, T value, CPU_DEVICE_LINE) {
    return (unsigned)cpu_device_collective(mask, cpu_device::Collective::match_any, cpu_device::pack(value), 0, line);
}
template <class T>
CPU_DEVICE_INLINE unsigned __match_all_sync(unsigned mask, T value, int* predicate, CPU_DEVICE_LINE) {
    const unsigned lanes =
        (unsigned)cpu_device_collective(mask, cpu_device::Collective::match_all, cpu_device::pack(value), 0, line);
    *predicate = lanes != 0;
    return lanes;
}

CPU_DEVICE_INLINE unsigned __reduce_add_sync(unsigned mask, unsigned value, CPU_DEVICE_LINE) {
    return cpu_device::reduce(mask, cpu_device::Collective::add, value, line);
}
CPU_DEVICE_INLINE int __reduce_add_sync(unsigned mask, int value, CPU_DEVICE_LINE) {
    return cpu_device::reduce(mask, cpu_device::Collective::add, value, line);
}
CPU_DEVICE_INLINE unsigned __reduce_min_sync(unsigned mask, unsigned value, CPU_DEVICE_LINE) {
    return cpu_device::reduce(mask, cpu_device::Collective::min_unsigned, value, line);
}
CPU_DEVICE_INLINE int __reduce_min_sync(unsigned mask, int value, CPU_DEVICE_LINE) {
    return cpu_device::reduce(mask, cpu_device::Collective::min_signed, value, line);
}
CPU_DEVICE_INLINE unsigned __reduce_max_sync(unsigned mask, unsigned value, CPU_DEVICE_LINE) {
    return cpu_device::reduce(mask, cpu_device::Collective::max_unsigned, value, line);
}
CPU_DEVICE_INLINE int __reduce_max_sync(unsigned mask, int value, CPU_DEVICE_LINE) {
    return cpu_device::reduce(mask, cpu_device::Collective::max_signed, value, line);
}
CPU_DEVICE_INLINE unsigned __reduce_and_sync(unsigned mask, unsigned value, CPU_DEVICE_LINE) {
    return cpu_device::reduce(mask, cpu_device::Collective::bit_and, value, line);
}
CPU_DEVICE_INLINE unsigned __reduce_or_sync(unsigned mask, unsigned value, CPU_DEVICE_LINE) {
    return cpu_device::reduce(mask, cpu_device::Collective::bit_or, value, line);
}
CPU_DEVICE_INLINE unsigned __reduce_xor_sync(unsigned mask, unsigned value, CPU_DEVICE_LINE) {
    return cpu_device::reduce(mask, cpu_device::Collective::bit_xor, value, line);
}
