// nvcuda::wmma: matrix products of a warp.
//
// How a fragment's elements lie over the lanes is unspecified in CUDA; here lane l holds the l-th run of them in
// row-major order.
#pragma once

#include "cuda_bf16.h"
#include "cuda_fp16.h"

namespace nvcuda {
namespace wmma {

struct matrix_a {};
struct matrix_b {};
struct accumulator {};
struct row_major {};
struct col_major {};
enum layout_t { mem_row_major, mem_col_major };
namespace precision {
struct tf32 {};
}

namespace detail {

// The type that a fragment stores, and the value that an element has in a product.
template <class T>
struct Element {
    using stored = T;
    static CPU_DEVICE_INLINE T operand(T value) { return value; }
};
template <>
struct Element<__half> {
    using stored = __half;
    static CPU_DEVICE_INLINE float operand(__half value) { return (float)value; }
};
template <>
struct Element<__nv_bfloat16> {
    using stored = __nv_bfloat16;
    static CPU_DEVICE_INLINE float operand(__nv_bfloat16 value) { return (float)value; }
};
template <>
struct Element<precision::tf32> {
    using stored = float;
    // The hardware does not look at the low bits, whether they were rounded away or not.
    static CPU_DEVICE_INLINE float operand(float value) { return __uint_as_float(__float_as_uint(value) & ~0x1fffu); }
};

template <class Use, int M, int N, int K>
struct Shape;
template <int M, int N, int K>
struct Shape<matrix_a, M, N, K> {
    static constexpr int rows = M, columns = K;
};
template <int M, int N, int K>
struct Shape<matrix_b, M, N, K> {
    static constexpr int rows = K, columns = N;
};
template <int M, int N, int K>
struct Shape<accumulator, M, N, K> {
    static constexpr int rows = M, columns = N;
};

// What accumulates: half products in float, integers in int, doubles in double.
template <class T>
struct Sum {
    using type = float;
};
template <>
struct Sum<int> {
    using type = int;
};
template <>
struct Sum<double> {
    using type = double;
};

template <class Layout>
struct IsColumnMajor {
    static constexpr bool value = false;
};
template <>
struct IsColumnMajor<col_major> {
    static constexpr bool value = true;
};

}  // namespace detail

template <class Use, int M, int N, int K, class T, class Layout = void>
struct fragment {
    using element_type = T;
    using storage_element_type = typename detail::Element<T>::stored;
    static constexpr int rows = detail::Shape<Use, M, N, K>::rows, columns = detail::Shape<Use, M, N, K>::columns;
    static constexpr int num_elements = rows * columns / 32;
    static constexpr int num_storage_elements = num_elements;
    storage_element_type x[num_elements];

    static CPU_DEVICE_INLINE int position(int i) { return (int)cpu_device_thread->lane * num_elements + i; }
    static CPU_DEVICE_INLINE size_t offset(int i, unsigned stride, bool is_column_major) {
        const int row = position(i) / columns, column = position(i) % columns;
        return is_column_major ? (size_t)column * stride + row : (size_t)row * stride + column;
    }
};

CPU_DEVICE_INLINE float __float_to_tf32(float value) {
    // To nearest, ties away from zero.
    return __uint_as_float((__float_as_uint(value) + 0x1000u) & ~0x1fffu);
}

template <class Use, int M, int N, int K, class T, class Layout, class Value>
CPU_DEVICE_INLINE void fill_fragment(fragment<Use, M, N, K, T, Layout>& f, const Value& value) {
    for (int i = 0; i < f.num_elements; i++) f.x[i] = value;
}

template <class Use, int M, int N, int K, class T, class Layout, class Source>
CPU_DEVICE_INLINE void load_matrix_sync(fragment<Use, M, N, K, T, Layout>& f, const Source* from, unsigned stride,
                                        CPU_DEVICE_LINE) {
    __syncwarp(0xffffffffu, line);
    for (int i = 0; i < f.num_elements; i++) f.x[i] = from[f.offset(i, stride, detail::IsColumnMajor<Layout>::value)];
}
template <int M, int N, int K, class T, class Source>
CPU_DEVICE_INLINE void load_matrix_sync(fragment<accumulator, M, N, K, T>& f, const Source* from, unsigned stride,
                                        layout_t layout, CPU_DEVICE_LINE) {
    __syncwarp(0xffffffffu, line);
    for (int i = 0; i < f.num_elements; i++) f.x[i] = from[f.offset(i, stride, layout == mem_col_major)];
}
template <int M, int N, int K, class T, class Target>
CPU_DEVICE_INLINE void store_matrix_sync(Target* to, const fragment<accumulator, M, N, K, T>& f, unsigned stride,
                                         layout_t layout, CPU_DEVICE_LINE) {
    __syncwarp(0xffffffffu, line);
    for (int i = 0; i < f.num_elements; i++) to[f.offset(i, stride, layout == mem_col_major)] = f.x[i];
}

template <int M, int N, int K, class D, class A, class LayoutA, class B, class LayoutB, class C>
CPU_DEVICE_INLINE void mma_sync(fragment<accumulator, M, N, K, D>& d, const fragment<matrix_a, M, N, K, A, LayoutA>& a,
                                const fragment<matrix_b, M, N, K, B, LayoutB>& b,
                                const fragment<accumulator, M, N, K, C>& c, CPU_DEVICE_LINE) {
    using FragmentA = fragment<matrix_a, M, N, K, A, LayoutA>;
    using FragmentB = fragment<matrix_b, M, N, K, B, LayoutB>;
    using FragmentD = fragment<accumulator, M, N, K, D>;
    struct Operands {
        const typename FragmentA::storage_element_type* a;
        const typename FragmentB::storage_element_type* b;
    };
    // Every lane shows the others where its elements are; they stay in place until all have read them.
    const Operands mine = {a.x, b.x};
    cpu_device_collective(0xffffffffu, cpu_device::Collective::gather, (cpu_device::u64)&mine, 0, line);
    const cpu_device::u64* lanes = cpu_device_gathered();
    typename FragmentD::storage_element_type result[FragmentD::num_elements];
    for (int i = 0; i < FragmentD::num_elements; i++) {
        const int row = d.position(i) / N, column = d.position(i) % N;
        typename detail::Sum<D>::type sum = c.x[i];
        for (int k = 0; k < K; k++) {
            const int at_a = row * K + k, at_b = k * N + column;
            const Operands* of_a = (const Operands*)lanes[at_a / FragmentA::num_elements];
            const Operands* of_b = (const Operands*)lanes[at_b / FragmentB::num_elements];
            // One rounding a step, as tensor cores have: a product that overflows alone need not overflow in the sum.
            sum = fma(detail::Element<A>::operand(of_a->a[at_a % FragmentA::num_elements]),
                      detail::Element<B>::operand(of_b->b[at_b % FragmentB::num_elements]), sum);
        }
        result[i] = sum;
    }
    __syncwarp(0xffffffffu, line);
    for (int i = 0; i < FragmentD::num_elements; i++) d.x[i] = result[i];
}

}  // namespace wmma
}  // namespace nvcuda
