// Cooperative groups: the block, tiles of up to 32 threads, and the grid's coordinates.
#pragma once

#include "cpu_device/prelude.h"

namespace cooperative_groups {

class thread_block {
  public:
    static void sync(CPU_DEVICE_LINE) { cpu_device_barrier(line); }
    static unsigned thread_rank() { return cpu_device_thread->rank; }
    static unsigned size() { return blockDim.x * blockDim.y * blockDim.z; }
    static unsigned num_threads() { return size(); }
    static dim3 group_index() { return dim3(blockIdx); }
    static dim3 thread_index() { return dim3(threadIdx); }
    static dim3 group_dim() { return blockDim; }
    static dim3 dim_threads() { return blockDim; }
};

inline thread_block this_thread_block() { return {}; }

// `Size` consecutive threads of a warp.
template <unsigned Size, class Parent = void>
class thread_block_tile {
    static_assert(Size >= 1 && Size <= 32 && (Size & (Size - 1)) == 0,
                  "a tile on the cpu device has 1, 2, 4, 8, 16 or 32 threads");

  public:
    thread_block_tile() = default;
    // A tile whose parent is not part of its type.
    template <class OtherParent>
    thread_block_tile(const thread_block_tile<Size, OtherParent>&) {}

    static unsigned mask() { return Size == 32 ? 0xffffffffu : ((1u << (Size & 31)) - 1) << first(); }
    static void sync(CPU_DEVICE_LINE) { __syncwarp(mask(), line); }
    static unsigned thread_rank() { return cpu_device_thread->lane % Size; }
    static constexpr unsigned size() { return Size; }
    static constexpr unsigned num_threads() { return Size; }
    static unsigned meta_group_rank() { return cpu_device_thread->rank % parent_size() / Size; }
    static unsigned meta_group_size() { return (parent_size() + Size - 1) / Size; }

    template <class T>
    static T shfl(T value, int source, CPU_DEVICE_LINE) {
        return exchange(value, first() + ((unsigned)source & (Size - 1)), line);
    }
    template <class T>
    static T shfl_up(T value, unsigned delta, CPU_DEVICE_LINE) {
        const unsigned lane = cpu_device_thread->lane;
        return exchange(value, thread_rank() >= delta ? lane - delta : lane, line);
    }
    template <class T>
    static T shfl_down(T value, unsigned delta, CPU_DEVICE_LINE) {
        const unsigned lane = cpu_device_thread->lane;
        return exchange(value, thread_rank() + delta < Size ? lane + delta : lane, line);
    }
    template <class T>
    static T shfl_xor(T value, unsigned bits, CPU_DEVICE_LINE) {
        const unsigned lane = cpu_device_thread->lane;
        return exchange(value, (thread_rank() ^ bits) < Size ? lane ^ bits : lane, line);
    }
    static unsigned ballot(int predicate, CPU_DEVICE_LINE) {
        return __ballot_sync(mask(), predicate, line) >> first();
    }
    static int any(int predicate, CPU_DEVICE_LINE) { return ballot(predicate, line) != 0; }
    static int all(int predicate, CPU_DEVICE_LINE) { return ballot(!predicate, line) == 0; }
    template <class T>
    static unsigned match_any(T value, CPU_DEVICE_LINE) {
        return __match_any_sync(mask(), value, line) >> first();
    }
    template <class T>
    static unsigned match_all(T value, int& predicate, CPU_DEVICE_LINE) {
        return __match_all_sync(mask(), value, &predicate, line) >> first();
    }

  private:
    static unsigned first() { return cpu_device_thread->lane & ~(Size - 1); }
    static unsigned parent_size();

    // Values of any size, eight bytes at a time.
    template <class T>
    static T exchange(const T& value, unsigned source, unsigned line) {
        constexpr unsigned words = (sizeof(T) + 7) / 8;
        cpu_device::u64 parts[words] = {};
        __builtin_memcpy(parts, &value, sizeof(T));
        for (unsigned i = 0; i < words; i++) parts[i] = cpu_device::shuffle(mask(), parts[i], source, line);
        T result;
        __builtin_memcpy(&result, parts, sizeof(T));
        return result;
    }
};

template <class Parent>
struct ParentSize {
    static unsigned value() { return thread_block::size(); }
};
template <unsigned Size, class Parent>
struct ParentSize<thread_block_tile<Size, Parent>> {
    static unsigned value() { return Size; }
};
template <unsigned Size, class Parent>
unsigned thread_block_tile<Size, Parent>::parent_size() {
    return ParentSize<Parent>::value();
}

template <unsigned Size, class Group>
inline thread_block_tile<Size, Group> tiled_partition(const Group&) {
    return {};
}

// Where a thread is in the grid. Blocks cannot wait for one another here.
class grid_group {
  public:
    static unsigned long long block_rank() {
        return blockIdx.x + (unsigned long long)gridDim.x * (blockIdx.y + (unsigned long long)gridDim.y * blockIdx.z);
    }
    static unsigned long long num_blocks() { return (unsigned long long)gridDim.x * gridDim.y * gridDim.z; }
    static unsigned long long thread_rank() { return block_rank() * thread_block::size() + thread_block::thread_rank(); }
    static unsigned long long size() { return num_blocks() * thread_block::size(); }
    static unsigned long long num_threads() { return size(); }
    static dim3 group_dim() { return gridDim; }
    static dim3 block_index() { return dim3(blockIdx); }
    static dim3 dim_blocks() { return gridDim; }
    template <class T = void>
    static void sync() {
        static_assert(sizeof(T) == 0, "grid-wide synchronization is not available on the cpu device");
    }
};

inline grid_group this_grid() { return {}; }

template <class Group>
inline void sync(const Group& group, CPU_DEVICE_LINE) {
    group.sync(line);
}
template <class Group>
inline auto thread_rank(const Group& group) {
    return group.thread_rank();
}
template <class Group>
inline auto group_size(const Group& group) {
    return group.size();
}

template <class Group, class Function>
inline void invoke_one(const Group& group, Function function) {
    if (group.thread_rank() == 0) function();
}

}  // namespace cooperative_groups
