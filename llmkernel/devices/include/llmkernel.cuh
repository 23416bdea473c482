// llmkernel.cuh: what is easily got wrong in a kernel, once and checked. Including it is optional.
//
//   Every device     warp_sum, warp_max, warp_min, warp_reduce; block_sum, block_max, block_min, block_reduce;
//                    Vector<T, N> with load_vector and store_vector
//   sm_80 and newer  copy_async, copy_async_commit, copy_async_wait; load_matrix_x4, load_matrix_x4_transposed;
//                    multiply_16x8x16
//   sm_90 and newer  TensorMap; mbarrier_*; tensor_load_2d, tensor_load_3d, tensor_store_2d, tensor_store_3d
//   sm_90a           wgmma_descriptor, wgmma_fence, wgmma_commit, wgmma_wait, wgmma_64xNx16
//
// It compiles under NVRTC and nvcc; on the cpu device the first group is there. Instructions and operand layouts are
// those of the PTX ISA manual, sections "mbarrier", "cp.async.bulk.tensor", "wgmma.mma_async" and "mma".
#pragma once

#ifndef LLMKERNEL_CPU_DEVICE
#include <cuda.h>
struct __half;
struct __nv_bfloat16;
#endif

namespace llmkernel {

// ---- Reductions -----------------------------------------------------------------------------------------------

struct Sum {
  template <typename T>
  __device__ T operator()(T a, T b) const {
    return a + b;
  }
};
struct Max {
  template <typename T>
  __device__ T operator()(T a, T b) const {
    return b > a ? b : a;
  }
};
struct Min {
  template <typename T>
  __device__ T operator()(T a, T b) const {
    return b < a ? b : a;
  }
};

// Combines the values of all 32 lanes; every lane gets the result. All lanes must take part.
template <typename T, typename Combine>
__device__ __forceinline__ T warp_reduce(T value, Combine combine) {
  for (int offset = 16; offset > 0; offset /= 2) {
    value = combine(value, __shfl_xor_sync(0xffffffffu, value, offset));
  }
  return value;
}
template <typename T>
__device__ __forceinline__ T warp_sum(T value) {
  return warp_reduce(value, Sum());
}
template <typename T>
__device__ __forceinline__ T warp_max(T value) {
  return warp_reduce(value, Max());
}
template <typename T>
__device__ __forceinline__ T warp_min(T value) {
  return warp_reduce(value, Min());
}

// Combines the values of all threads of a block; every thread gets the result. The block has a multiple of 32 threads,
// all of them take part, and `identity` changes nothing when combined.
template <typename T, typename Combine>
__device__ __forceinline__ T block_reduce(T value, Combine combine, T identity) {
  __shared__ T partial[32];
  const int thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  const int warps = blockDim.x * blockDim.y * blockDim.z / 32;
  const int lane = thread % 32;
  value = warp_reduce(value, combine);
  __syncthreads();  // The partial results of a reduction before this one have been read.
  if (lane == 0) partial[thread / 32] = value;
  __syncthreads();
  return warp_reduce(lane < warps ? partial[lane] : identity, combine);
}
template <typename T>
__device__ __forceinline__ T block_sum(T value) {
  return block_reduce(value, Sum(), T(0));
}
template <typename T>
__device__ __forceinline__ T block_max(T value, T identity) {
  return block_reduce(value, Max(), identity);
}
template <typename T>
__device__ __forceinline__ T block_min(T value, T identity) {
  return block_reduce(value, Min(), identity);
}

// ---- Vectors --------------------------------------------------------------------------------------------------

// N elements that are loaded and stored at once; the address must be a multiple of N * sizeof(T), at most 16 bytes.
template <typename T, int N>
struct alignas(N * sizeof(T)) Vector {
  T values[N];
  __device__ T& operator[](int i) { return values[i]; }
  __device__ const T& operator[](int i) const { return values[i]; }
};
template <int N, typename T>
__device__ __forceinline__ Vector<T, N> load_vector(const T* address) {
  return *reinterpret_cast<const Vector<T, N>*>(address);
}
template <int N, typename T>
__device__ __forceinline__ void store_vector(T* address, const Vector<T, N>& vector) {
  *reinterpret_cast<Vector<T, N>*>(address) = vector;
}

#ifndef LLMKERNEL_CPU_DEVICE

// The address of shared memory as PTX wants it: 32 bits.
__device__ __forceinline__ unsigned shared_address(const void* pointer) {
  return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

// ---- Asynchronous copies, sm_80 -------------------------------------------------------------------------------

// Starts a copy of 16 bytes to shared memory; both addresses are multiples of 16. With `is_valid` false, zeros.
__device__ __forceinline__ void copy_async(void* shared, const void* global, bool is_valid = true) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(shared)), "l"(global),
               "r"(is_valid ? 16 : 0)
               : "memory");
}
// Closes a group of copies.
__device__ __forceinline__ void copy_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Waits until at most `Pending` groups of this thread are under way; __syncthreads() makes them visible to the block.
template <int Pending>
__device__ __forceinline__ void copy_async_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(Pending) : "memory");
}

// ---- Warp matrix products, sm_80 ------------------------------------------------------------------------------

// Loads four 8x8 matrices of 2-byte elements; lanes 8i to 8i+7 give the addresses of the rows of matrix i.
__device__ __forceinline__ void load_matrix_x4(unsigned (&fragment)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(fragment[0]), "=r"(fragment[1]), "=r"(fragment[2]), "=r"(fragment[3])
               : "r"(shared_address(row))
               : "memory");
}
// The same, each matrix transposed: for a row-major second factor.
__device__ __forceinline__ void load_matrix_x4_transposed(unsigned (&fragment)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(fragment[0]), "=r"(fragment[1]), "=r"(fragment[2]), "=r"(fragment[3])
               : "r"(shared_address(row))
               : "memory");
}

template <typename T>
struct IsBfloat16 {
  static constexpr bool value = false;
};
template <>
struct IsBfloat16<__nv_bfloat16> {
  static constexpr bool value = true;
};

// d += a * b for a of 16x16 (row-major fragment), b of 16x8 (column-major fragment), T __half or __nv_bfloat16.
// Lane l holds d of row l / 4 (d[0], d[1]) and l / 4 + 8 (d[2], d[3]), columns 2 * (l % 4) and the next.
template <typename T>
__device__ __forceinline__ void multiply_16x8x16(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  if constexpr (IsBfloat16<T>::value) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  } else {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  }
}

// ---- Barriers in shared memory, sm_90 -------------------------------------------------------------------------

using Mbarrier = unsigned long long;  // Declare it __shared__; one thread initialises it.

// After all barriers are initialised: mbarrier_init_fence() by that thread, then __syncthreads() (for a cluster,
// a cluster barrier).
__device__ __forceinline__ void mbarrier_init(Mbarrier* barrier, unsigned arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(arrivals) : "memory");
}
__device__ __forceinline__ void mbarrier_init_fence() {
  asm volatile("fence.mbarrier_init.release.cluster;\n\tfence.proxy.async.shared::cta;" ::: "memory");
}
__device__ __forceinline__ void mbarrier_arrive(Mbarrier* barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
}
// One arrival that also announces how many bytes TMA will bring in this phase.
__device__ __forceinline__ void mbarrier_arrive_expect(Mbarrier* barrier, unsigned bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)), "r"(bytes)
               : "memory");
}
// Waits for the end of the phase with this parity: 0 for the first, 1 for the second, 0 for the third…
__device__ __forceinline__ void mbarrier_wait(Mbarrier* barrier, unsigned parity) {
  unsigned is_done;
  do {
    asm volatile(
        "{\n\t.reg .pred p;\n\t"
        "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n\t"
        "selp.u32 %0, 1, 0, p;\n\t}"
        : "=r"(is_done)
        : "r"(shared_address(barrier)), "r"(parity)
        : "memory");
  } while (!is_done);
}

// ---- The tensor memory accelerator, sm_90 ---------------------------------------------------------------------

// The parameter of a kernel that is launched with tensor_map(x, box=…): `const __grid_constant__ TensorMap map`.
using TensorMap = CUtensorMap;

__device__ __forceinline__ void tensor_map_prefetch(const TensorMap& map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

// One thread starts a copy of one box into shared memory (aligned to 128 bytes; to 1024 with a swizzle of 128).
// Coordinates are in elements, the innermost axis first; what lies outside of the array reads as zero.
__device__ __forceinline__ void tensor_load_2d(void* shared, const TensorMap& map, int inner, int outer,
                                               Mbarrier* barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
      ::"r"(shared_address(shared)), "l"(&map), "r"(inner), "r"(outer), "r"(shared_address(barrier))
      : "memory");
}
__device__ __forceinline__ void tensor_load_3d(void* shared, const TensorMap& map, int inner, int middle, int outer,
                                               Mbarrier* barrier) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%2, %3, %4}], [%5];" ::"r"(shared_address(shared)),
      "l"(&map), "r"(inner), "r"(middle), "r"(outer), "r"(shared_address(barrier))
      : "memory");
}

// Before a store (or a wgmma) reads what threads wrote to shared memory: each of them fences, then they synchronise.
__device__ __forceinline__ void async_proxy_fence() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// One thread starts a copy of one box to the array; what lies outside of it is not written.
__device__ __forceinline__ void tensor_store_2d(const TensorMap& map, const void* shared, int inner, int outer) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];" ::"l"(&map),
               "r"(inner), "r"(outer), "r"(shared_address(shared))
               : "memory");
}
__device__ __forceinline__ void tensor_store_3d(const TensorMap& map, const void* shared, int inner, int middle,
                                                int outer) {
  asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group [%0, {%1, %2, %3}], [%4];" ::"l"(&map),
               "r"(inner), "r"(middle), "r"(outer), "r"(shared_address(shared))
               : "memory");
}
// Closes this thread's group of stores.
__device__ __forceinline__ void tensor_store_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
// Waits until at most `Pending` groups still read shared memory; 0 before the memory is written again.
template <int Pending>
__device__ __forceinline__ void tensor_store_wait() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(Pending) : "memory");
}

// ---- Warpgroup matrix products, sm_90a ------------------------------------------------------------------------

// Describes a tile in shared memory whose rows along the reduction are swizzled by 128 bytes, as
// tensor_map(…, box=(rows, 64), swizzle=128) of a 2-byte dtype loads it: 8 rows every 1024 bytes. The tile is aligned
// to 1024 bytes; add 2 to the descriptor for each further step of 16 along the reduction.
__device__ __forceinline__ unsigned long long wgmma_descriptor(const void* tile) {
  const unsigned long long address = (shared_address(tile) & 0x3ffffu) >> 4;
  return address | (1ull << 16) | (64ull << 32) | (1ull << 62);
}
// By all 128 threads before the first product, and after registers of an accumulator were written.
__device__ __forceinline__ void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
// Waits until at most `Pending` groups are under way.
template <int Pending>
__device__ __forceinline__ void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Pending) : "memory");
}

#define LLMKERNEL_F8(d, i)                                                                                     \
  "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]), \
      "+f"(d[i + 7])
#define LLMKERNEL_F32(d, i) LLMKERNEL_F8(d, i), LLMKERNEL_F8(d, i + 8), LLMKERNEL_F8(d, i + 16), LLMKERNEL_F8(d, i + 24)
#define LLMKERNEL_WGMMA(SHAPE, TYPE, REGISTERS, A, B, PREDICATE, ...)                                     \
  asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.b32 p, " PREDICATE ", 0;\n\t"                               \
               "wgmma.mma_async.sync.aligned." SHAPE ".f32." TYPE "." TYPE " {" REGISTERS "}, " A ", " B \
               ", p, 1, 1, 0, 0;\n\t}"                                                                    \
               : __VA_ARGS__                                                                              \
               : "l"(a), "l"(b), "r"(accumulates))

#define LLMKERNEL_REGISTERS_64 \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define LLMKERNEL_REGISTERS_128 \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, " \
  "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
  "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define LLMKERNEL_REGISTERS_256 \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, " \
  "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
  "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, " \
  "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, " \
  "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, " \
  "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, " \
  "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"

// d (+)= a * b for a tile a of 64x16 and a tile b of Nx16, both K-major in shared memory, N = 64, 128 or 256, T __half
// or __nv_bfloat16. All 128 threads of a warpgroup call it. With `accumulates` 0 the old d is not read. Thread t holds
// row 16 * (t / 32) + (t % 32) / 4 (and that row + 8) and, in d[4 * j] and d[4 * j + 1] (and d[4 * j + 2], d[4 * j + 3]),
// columns 8 * j + 2 * (t % 4) and the next.
template <typename T, int N>
__device__ __forceinline__ void wgmma_64xNx16(float (&d)[N / 2], unsigned long long a, unsigned long long b,
                                              int accumulates = 1) {
  static_assert(N == 64 || N == 128 || N == 256, "N is 64, 128 or 256");
  if constexpr (N == 64) {
    if constexpr (IsBfloat16<T>::value) {
      LLMKERNEL_WGMMA("m64n64k16", "bf16", LLMKERNEL_REGISTERS_64, "%32", "%33", "%34", LLMKERNEL_F32(d, 0));
    } else {
      LLMKERNEL_WGMMA("m64n64k16", "f16", LLMKERNEL_REGISTERS_64, "%32", "%33", "%34", LLMKERNEL_F32(d, 0));
    }
  } else if constexpr (N == 128) {
    if constexpr (IsBfloat16<T>::value) {
      LLMKERNEL_WGMMA("m64n128k16", "bf16", LLMKERNEL_REGISTERS_128, "%64", "%65", "%66", LLMKERNEL_F32(d, 0), LLMKERNEL_F32(d, 32));
    } else {
      LLMKERNEL_WGMMA("m64n128k16", "f16", LLMKERNEL_REGISTERS_128, "%64", "%65", "%66", LLMKERNEL_F32(d, 0), LLMKERNEL_F32(d, 32));
    }
  } else if constexpr (N == 256) {
    if constexpr (IsBfloat16<T>::value) {
      LLMKERNEL_WGMMA("m64n256k16", "bf16", LLMKERNEL_REGISTERS_256, "%128", "%129", "%130", LLMKERNEL_F32(d, 0), LLMKERNEL_F32(d, 32), LLMKERNEL_F32(d, 64), LLMKERNEL_F32(d, 96));
    } else {
      LLMKERNEL_WGMMA("m64n256k16", "f16", LLMKERNEL_REGISTERS_256, "%128", "%129", "%130", LLMKERNEL_F32(d, 0), LLMKERNEL_F32(d, 32), LLMKERNEL_F32(d, 64), LLMKERNEL_F32(d, 96));
    }
  }
}

#undef LLMKERNEL_F8
#undef LLMKERNEL_F32
#undef LLMKERNEL_WGMMA
#undef LLMKERNEL_REGISTERS_64
#undef LLMKERNEL_REGISTERS_128
#undef LLMKERNEL_REGISTERS_256

#endif  // LLMKERNEL_CPU_DEVICE

}  // namespace llmkernel
