// cooperative_groups::reduce and its operators.
#pragma once

#include "../cooperative_groups.h"

namespace cooperative_groups {

template <class T>
struct plus {
    T operator()(T a, T b) const { return a + b; }
};
template <class T>
struct less {
    T operator()(T a, T b) const { return b < a ? b : a; }
};
template <class T>
struct greater {
    T operator()(T a, T b) const { return a < b ? b : a; }
};
template <class T>
struct bit_and {
    T operator()(T a, T b) const { return a & b; }
};
template <class T>
struct bit_or {
    T operator()(T a, T b) const { return a | b; }
};
template <class T>
struct bit_xor {
    T operator()(T a, T b) const { return a ^ b; }
};

// Every thread of the tile gets the result.
template <unsigned Size, class Parent, class T, class Operation>
inline T reduce(const thread_block_tile<Size, Parent>& tile, T value, Operation operation, CPU_DEVICE_LINE) {
    for (unsigned distance = Size / 2; distance; distance /= 2)
        value = operation(value, tile.shfl_xor(value, distance, line));
    return value;
}

}  // namespace cooperative_groups
