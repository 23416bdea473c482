// cooperative_groups::inclusive_scan and exclusive_scan.
#pragma once

#include "reduce.h"

namespace cooperative_groups {

template <unsigned Size, class Parent, class T, class Operation>
inline T inclusive_scan(const thread_block_tile<Size, Parent>& tile, T value, Operation operation, CPU_DEVICE_LINE) {
    for (unsigned distance = 1; distance < Size; distance *= 2) {
        const T before = tile.shfl_up(value, distance, line);
        if (tile.thread_rank() >= distance) value = operation(before, value);
    }
    return value;
}
template <unsigned Size, class Parent, class T>
inline T inclusive_scan(const thread_block_tile<Size, Parent>& tile, T value, CPU_DEVICE_LINE) {
    return inclusive_scan(tile, value, plus<T>(), line);
}

// The first thread gets a value-initialised T, as in CUDA.
template <unsigned Size, class Parent, class T, class Operation>
inline T exclusive_scan(const thread_block_tile<Size, Parent>& tile, T value, Operation operation, CPU_DEVICE_LINE) {
    const T before = tile.shfl_up(inclusive_scan(tile, value, operation, line), 1, line);
    return tile.thread_rank() == 0 ? T() : before;
}
template <unsigned Size, class Parent, class T>
inline T exclusive_scan(const thread_block_tile<Size, Parent>& tile, T value, CPU_DEVICE_LINE) {
    return exclusive_scan(tile, value, plus<T>(), line);
}

}  // namespace cooperative_groups
