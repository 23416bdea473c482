"""Mathematical functions, intrinsics, half and bfloat16 against NumPy, PyTorch and ml_dtypes."""

from __future__ import annotations

import math
import struct
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
import torch

from llmkernel.errors import CompileError

from .support import DEVICE, results

RANDOM = np.random.default_rng(3)

ONE = {
    "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "sinh": np.sinh,
    "cosh": np.cosh, "tanh": np.tanh, "asinh": np.arcsinh, "atanh": np.arctanh, "exp": np.exp, "exp2": np.exp2,
    "exp10": lambda x: 10.0**x, "expm1": np.expm1, "log": np.log, "log2": np.log2, "log10": np.log10, "log1p": np.log1p,
    "sqrt": np.sqrt, "cbrt": np.cbrt, "rsqrt": lambda x: 1 / np.sqrt(x), "rcbrt": lambda x: 1 / np.cbrt(x),
    "floor": np.floor,
    "ceil": np.ceil, "trunc": np.trunc, "rint": np.rint, "fabs": np.abs, "sinpi": lambda x: np.sin(np.pi * x),
    "cospi": lambda x: np.cos(np.pi * x), "erf": np.vectorize(math.erf), "erfc": np.vectorize(math.erfc),
    "tgamma": np.vectorize(math.gamma), "lgamma": np.vectorize(math.lgamma),
    "normcdf": np.vectorize(lambda x: 0.5 * math.erfc(-x / math.sqrt(2))),
    "erfinv": lambda x: torch.erfinv(torch.from_numpy(x)).numpy(),
    "normcdfinv": lambda x: torch.special.ndtri(torch.from_numpy(x)).numpy(),
    "erfcx": lambda x: torch.special.erfcx(torch.from_numpy(x)).numpy(),
    "erfcinv": lambda x: torch.erfinv(1 - torch.from_numpy(x)).numpy(),
    "j0": lambda x: torch.special.bessel_j0(torch.from_numpy(x)).numpy(),
}  # fmt: skip


@pytest.mark.parametrize("precision", ["float", "double"])
def test_functions_of_one_argument(precision: str) -> None:
    suffix = "f" if precision == "float" else ""
    lines = "\n".join(f"out[{i} * n + i] = {name}{suffix}(v);" for i, name in enumerate(ONE))
    lines = lines.replace("+ i]", "+ at]")
    source = f"""
    __global__ void maths(const {precision}* x, {precision}* out, int n) {{
      int at = blockIdx.x * blockDim.x + threadIdx.x;
      if (at >= n) return;
      {precision} v = x[at];
      {lines}
    }}"""
    dtype = np.float32 if precision == "float" else np.float64
    x = RANDOM.uniform(0.02, 0.98, 300).astype(dtype)
    _, out = results(source, "maths", 3, 128, x, np.zeros((len(ONE), 300), dtype), np.int32(300))
    tolerance = 4e-7 if precision == "float" else 2e-13
    for row, (name, function) in zip(out, ONE.items(), strict=True):
        expected = function(x.astype(np.float64))
        assert np.allclose(row, expected, rtol=tolerance, atol=tolerance / 4), name


def test_tails_of_the_inverse_error_functions() -> None:
    source = """
    __global__ void tails(const double* x, double* out) {
      int i = threadIdx.x;
      out[i * 3] = erfinv(x[i]);
      out[i * 3 + 1] = erfcinv(1e-10 * x[i]);
      out[i * 3 + 2] = erfcx(x[i] * 60.0);
    }"""
    x = np.linspace(0.001, 0.999, 32)
    _, out = results(source, "tails", 1, 32, x, np.zeros((32, 3)))
    assert np.allclose(np.vectorize(math.erf)(out[:, 0]), x, rtol=1e-13)
    assert np.allclose(np.vectorize(math.erfc)(out[:, 1]), 1e-10 * x, rtol=1e-12)
    assert np.allclose(out[:, 2], torch.special.erfcx(torch.from_numpy(x * 60)).numpy(), rtol=1e-9)


def test_functions_of_two_arguments_and_overloads() -> None:
    source = """
    __global__ void two(const float* x, const float* y, float* out, int n) {
      int i = threadIdx.x;
      float a = x[i], b = y[i];
      float* o = out + i * 14;
      o[0] = powf(a, b); o[1] = atan2f(a, b); o[2] = fmodf(a, b); o[3] = hypotf(a, b); o[4] = fmaf(a, b, 1.0f);
      o[5] = copysignf(a, -b); o[6] = fdimf(a, b); o[7] = remainderf(a, b);
      o[8] = pow(a, 2); o[9] = max(a, b); o[10] = std::min(a, b); o[11] = abs(-a);
      o[12] = isnan(a) + isinf(b / 0.0f) * 2 + signbit(-a) * 4 + isfinite(a) * 8;
      o[13] = fminf(NAN, a) + fmaxf(-INFINITY, b) + min(3, (int)4.5f) + max(7u, 2);
    }"""
    a, b = RANDOM.uniform(0.1, 4, (2, 64)).astype(np.float32)
    *_, out = results(source, "two", 1, 64, a, b, np.zeros((64, 14), np.float32), np.int32(64))
    x, y = a.astype(np.float64), b.astype(np.float64)
    expected = [x**y, np.arctan2(x, y), np.fmod(x, y), np.hypot(x, y), x * y + 1, -x, np.maximum(x - y, 0),
                np.vectorize(math.remainder)(x, y), x * x, np.maximum(x, y), np.minimum(x, y), x, 14 + 0 * x,
                x + y + 3 + 7]  # fmt: skip
    assert np.allclose(out, np.stack(expected, 1), rtol=1e-6, atol=1e-6)


def test_integer_intrinsics() -> None:
    source = """
    __global__ void bits(const unsigned* x, const unsigned* y, unsigned* out) {
      int i = threadIdx.x;
      unsigned a = x[i], b = y[i];
      unsigned* o = out + i * 16;
      o[0] = __popc(a); o[1] = __clz(a); o[2] = __ffs(a); o[3] = __brev(a);
      o[4] = __umulhi(a, b); o[5] = __mulhi((int)a, (int)b);
      o[6] = __byte_perm(a, b, 0x5140); o[7] = __funnelshift_l(a, b, 7); o[8] = __funnelshift_r(a, b, 39);
      o[9] = __dp4a((int)a, (int)b, 5); o[10] = __dp4a(a, b, 5u); o[11] = __popcll(((unsigned long long)a << 32) | b);
      o[12] = (unsigned)(__umul64hi((unsigned long long)a << 32, b)); o[13] = __uhadd(a, b); o[14] = __fns(a, 0, 3);
      o[15] = __sad((int)a, (int)b, 1u);
    }"""
    a, b = RANDOM.integers(1, 2**32, (2, 64), dtype=np.uint64).astype(np.uint32)
    *_, out = results(source, "bits", 1, 64, a, b, np.zeros((64, 16), np.uint32))
    for row, x, y in zip(out, a.tolist(), b.tolist(), strict=True):
        sx, sy = (v - 2**32 if v >> 31 else v for v in (x, y))
        bytes_of = struct.pack("<II", x, y)
        signed = [struct.unpack("4b", struct.pack("<I", v)) for v in (x, y)]
        positions = [i for i in range(32) if x >> i & 1]
        expected = [
            x.bit_count(), 32 - x.bit_length(), positions[0] + 1, int(f"{x:032b}"[::-1], 2),
            x * y >> 32, (sx * sy >> 32) % 2**32,
            int.from_bytes(bytes(bytes_of[i] for i in (0, 4, 1, 5)), "little"), ((y << 32 | x) << 7 >> 32) % 2**32,
            (y << 32 | x) >> 7 & 0xFFFFFFFF, (5 + sum(p * q for p, q in zip(*signed, strict=True))) % 2**32,
            (5 + sum(p * q for p, q in zip(bytes_of[:4], bytes_of[4:], strict=True))) % 2**32,
            x.bit_count() + y.bit_count(),
            (x << 32) * y >> 64, x + y >> 1, positions[2], (abs(sx - sy) + 1) % 2**32,
        ]  # fmt: skip
        assert row.tolist() == expected


def test_conversions_saturate_and_round_as_the_hardware_does() -> None:
    source = """
    __global__ void convert(const float* x, int* out) {
      float v = x[threadIdx.x];
      int* o = out + threadIdx.x * 6;
      o[0] = __float2int_rn(v); o[1] = __float2int_rz(v); o[2] = __float2int_rd(v); o[3] = __float2int_ru(v);
      o[4] = (int)__float2uint_rn(v); o[5] = __float_as_int(v);
    }"""
    x = np.array([2.5, 3.5, -2.5, -0.1, 1e20, -1e20, np.nan, 7.0], np.float32)
    _, out = results(source, "convert", 1, 8, x, np.zeros((8, 6), np.int32))
    top, low, all_ones = 2**31 - 1, -(2**31), -1
    assert out[:, :5].tolist() == [
        [2, 2, 2, 3, 2], [4, 3, 3, 4, 4], [-2, -2, -3, -2, 0], [0, 0, -1, 0, 0], [top, top, top, top, all_ones],
        [low, low, low, low, 0], [0, 0, 0, 0, 0], [7, 7, 7, 7, 7],
    ]  # fmt: skip
    assert (out[:, 5] == x.view(np.int32)).all()


NARROW = {
    "half": ("cuda_fp16.h", np.dtype(np.float16), "__float2half", "half2"),
    "__nv_bfloat16": ("cuda_bf16.h", np.dtype(ml_dtypes.bfloat16), "__float2bfloat16", "__nv_bfloat162"),
}


@pytest.mark.parametrize("kind", NARROW)
def test_every_16_bit_value_widens_and_narrows_exactly(kind: str) -> None:
    header, dtype, narrow, _ = NARROW[kind]
    source = f"""
    #include <{header}>
    __global__ void convert(const {kind}* x, float* wide, const float* y, {kind}* near,
                            const double* d, {kind}* from_double) {{
      int i = blockIdx.x * blockDim.x + threadIdx.x;
      wide[i] = x[i];
      near[i] = {narrow}(y[i]);
      from_double[i] = {kind}(d[i]);
    }}"""
    x = np.arange(65536, dtype=np.uint16).view(dtype)
    with np.errstate(all="ignore"):
        y = RANDOM.integers(0, 2**32, 65536, dtype=np.uint64).astype(np.uint32).view(np.float32).copy()
        wide_x = x.astype(np.float32)
        # Ties and their neighbours, where rounding goes wrong first.
        middles = ((wide_x[:-1].astype(np.float64) + wide_x[1:]) / 2).astype(np.float32)
        y[:30000] = middles[:30000]
        y[30000:60000] = np.nextafter(middles[:30000], np.float32(np.inf))
        d = np.nextafter(y.astype(np.float64), np.inf)
    zeros = np.zeros(65536, dtype)
    _, wide, _, near, _, from_double = results(
        source, "convert", 256, 256, x, np.zeros(65536, np.float32), y, zeros, d, zeros
    )
    assert np.array_equal(wide, wide_x, equal_nan=True)
    with np.errstate(all="ignore"):
        expected = y.astype(dtype)
        above = np.nextafter(y, np.float32(np.inf)).astype(dtype)
    assert np.array_equal(near.astype(np.float32), expected.astype(np.float32), equal_nan=True)
    # A double just above a float rounds as the float does, unless the float was a tie.
    got = from_double.astype(np.float64)
    allowed = (got == expected.astype(np.float64)) | (got == above.astype(np.float64)) | np.isnan(y)
    assert allowed.all()
    ties = slice(1, 30000)
    finite = np.isfinite(middles[ties])
    assert (got[ties][finite] >= d[ties][finite]).all()


@pytest.mark.parametrize("kind", NARROW)
def test_16_bit_arithmetic_rounds_every_operation(kind: str) -> None:
    header, dtype, _, pair = NARROW[kind]
    source = f"""
    #include <{header}>
    __global__ void arithmetic(const {kind}* x, const {kind}* y, {kind}* out, bool* flags) {{
      int i = threadIdx.x;
      {kind} a = x[i], b = y[i];
      {kind}* o = out + i * 12;
      o[0] = a + b; o[1] = a - b; o[2] = a * b; o[3] = a / b; o[4] = -a; o[5] = __hfma(a, b, a); o[6] = __hmax(a, b);
      o[7] = hexp(a); o[8] = hsqrt(__habs(a)); o[9] = a; o[9] += b;
      {pair} p = {pair}(a, b), q = __hfma2(p, p, __hadd2(p, p));
      o[10] = q.x; o[11] = __hmul2(p, q).y;
      flags[i * 3] = a < b; flags[i * 3 + 1] = __hgt(a, b); flags[i * 3 + 2] = a == a && a != b;
    }}"""
    a, b = RANDOM.uniform(-4, 4, (2, 128)).astype(dtype)
    *_, out, flags = results(
        source, "arithmetic", 1, 128, a, b, np.zeros((128, 12), dtype), np.zeros((128, 3), bool)
    )
    x, y = a.astype(np.float64), b.astype(np.float64)

    def rounded(values: np.ndarray) -> np.ndarray:
        return values.astype(np.float32).astype(dtype).astype(np.float64)

    q0 = rounded(x * x + rounded(x + x))
    q1 = rounded(y * y + rounded(y + y))
    expected = [
        x + y,
        x - y,
        x * y,
        x / y,
        -x,
        x * y + x,
        np.maximum(x, y),
        np.exp(x),
        np.sqrt(abs(x)),
        x + y,
        q0,
        y * q1,
    ]
    for column, values in enumerate(expected):
        assert (out[:, column].astype(np.float64) == rounded(values)).all(), column
    assert (flags == np.stack([x < y, x > y, x != y], 1)).all()


def test_16_bit_atomics_and_shuffles() -> None:
    source = """
    #include <cuda_fp16.h>
    #include <cuda_bf16.h>
    __global__ void sums(half* h, half2* h2, __nv_bfloat16* b, half* shuffled) {
      atomicAdd(h, __float2half(1.0f));
      atomicAdd(h2, __floats2half2_rn(1.0f, 2.0f));
      atomicAdd(b, __float2bfloat16(1.0f));
      shuffled[threadIdx.x] = __shfl_xor_sync(~0u, __int2half_rn(threadIdx.x), 1);
    }"""
    start = (
        np.zeros(1, np.float16),
        np.zeros(2, np.float16),
        np.zeros(1, ml_dtypes.bfloat16),
        np.zeros(64, np.float16),
    )
    h, h2, b, shuffled = results(source, "sums", 1, 64, *start)
    assert (h[0], h2[0], h2[1], float(b[0])) == (64, 64, 128, 64)
    assert (shuffled == np.arange(64) ^ 1).all()


def test_directed_half_rounding() -> None:
    source = """
    #include <cuda_fp16.h>
    __global__ void directed(const float* x, half* out) {
      float v = x[threadIdx.x];
      half* o = out + threadIdx.x * 3;
      o[0] = __float2half_rd(v); o[1] = __float2half_ru(v); o[2] = __float2half_rz(v);
    }"""
    x = RANDOM.normal(0, 100, 256).astype(np.float32)
    _, out = results(source, "directed", 1, 256, x, np.zeros((256, 3), np.float16))
    down, up, zero = out.astype(np.float64).T
    assert (down <= x).all()
    assert (up >= x).all()
    near = np.spacing(np.abs(x).astype(np.float16)).astype(np.float64)
    assert (up - down <= near).all()
    assert (zero == np.where(x < 0, up, down)).all()


def test_complex_numbers() -> None:
    source = """
    #include <cuComplex.h>
    __global__ void products(const float2* x, cuDoubleComplex* y, float2* z) {
      z[threadIdx.x] = cuCmulf(x[threadIdx.x], cuConjf(x[(threadIdx.x + 1) % blockDim.x]));
      y[threadIdx.x] = cuCdiv(y[threadIdx.x], make_cuDoubleComplex(3.0, 4.0));
    }"""
    x = (RANDOM.normal(size=32) + 1j * RANDOM.normal(size=32)).astype(np.complex64)
    y = RANDOM.normal(size=32) + 1j * RANDOM.normal(size=32)
    _, quotient, product = results(source, "products", 1, 32, x, y, x * 0)
    assert np.allclose(product, x * np.roll(x, -1).conj(), rtol=1e-5, atol=1e-6)
    assert np.allclose(quotient, y / (3 + 4j), rtol=1e-14)


def test_names_that_candidates_use_without_including_them() -> None:
    source = """
    #include <cstdint>
    #include <cuda/std/limits>
    #include <cuda/std/type_traits>
    template <typename T> __device__ T lowest() {
      if constexpr (cuda::std::is_floating_point_v<T>) return -std::numeric_limits<T>::infinity();
      else return std::numeric_limits<T>::lowest();
    }
    __global__ void constants(double* out) {
      const double values[] = {lowest<float>(), (double)lowest<int32_t>(), FLT_MAX, DBL_MIN,
                               M_PI, INT_MAX, UINT32_MAX, FLT_EPSILON,
                               CUDART_INF_F, -INFINITY, std::max(2, 3), cuda::std::numeric_limits<float>::max(), warpSize};
      for (int i = 0; i < 13; i++) out[i] = values[i];
      uint64_t wide = 1ull << 40; size_t n = sizeof(wide); uint shorthand = 3;
      out[13] = std::isnan(NAN) + n + shorthand;
    }"""
    (out,) = results(source, "constants", 1, 1, np.zeros(14))
    f = np.finfo(np.float32)
    inf = np.inf
    assert list(out) == [
        -inf,
        -(2**31),
        f.max,
        np.finfo(np.float64).tiny,
        np.pi,
        2**31 - 1,
        2**32 - 1,
        f.eps,
        inf,
        -inf,
        3,
        f.max,
        32,
        12,
    ]


def test_directed_rounding_brackets_the_exact_value() -> None:
    operations = {"fadd": "a + b", "fsub": "a - b", "fmul": "a * b", "fdiv": "a / b"}
    calls = "".join(
        f"o[{3 * i}] = __{name}_rd(a, b); o[{3 * i + 1}] = __{name}_ru(a, b); o[{3 * i + 2}] = __{name}_rz(a, b);"
        for i, name in enumerate(operations)
    )
    source = f"""
    __global__ void directed(const float* x, const float* y, float* out) {{
      int i = blockIdx.x * blockDim.x + threadIdx.x;
      float a = x[i], b = y[i];
      float* o = out + i * 15;
      {calls}
      o[12] = __fsqrt_rd(fabsf(a)); o[13] = __fsqrt_ru(fabsf(a)); o[14] = __fsqrt_rz(fabsf(a));
    }}"""
    a, b = RANDOM.normal(0, 10, (2, 1024)).astype(np.float32)
    *_, out = results(source, "directed", 4, 256, a, b, np.zeros((1024, 15), np.float32))
    for i in range(1024):
        x, y = Fraction(float(a[i])), Fraction(float(b[i]))
        for column, exact in enumerate((x + y, x - y, x * y, x / y)):
            down, up, zero = (Fraction(float(v)) for v in out[i, 3 * column : 3 * column + 3])
            assert down <= exact <= up
            assert zero == (up if exact < 0 else down)
            assert np.nextafter(np.float32(down), np.float32(np.inf)) >= np.float32(up)
        down, up, zero = (Fraction(float(v)) for v in out[i, 12:])
        assert down**2 <= abs(x) <= up**2
        assert zero == down


def test_parts_of_words() -> None:
    source = """
    __global__ void parts(const unsigned* x, const unsigned* y, unsigned* out) {
      int i = threadIdx.x;
      unsigned a = x[i], b = y[i];
      unsigned* o = out + i * 8;
      o[0] = __vadd4(a, b); o[1] = __vsubss2(a, b); o[2] = __vmaxs4(a, b); o[3] = __vminu2(a, b);
      o[4] = __vabsdiffu4(a, b); o[5] = __vsadu4(a, b); o[6] = __vcmpgts2(a, b); o[7] = __vaddus4(a, b);
    }"""
    a, b = RANDOM.integers(0, 2**32, (2, 64), dtype=np.uint64).astype(np.uint32)
    *_, out = results(source, "parts", 1, 64, a, b, np.zeros((64, 8), np.uint32))

    def wide(words: np.ndarray, dtype: str) -> np.ndarray:
        return words.view(dtype).reshape(64, -1).astype(np.int64)

    def words(values: np.ndarray, dtype: str) -> np.ndarray:
        return values.astype(dtype).reshape(-1).view(np.uint32)

    u4, v4, s4, t4 = wide(a, "uint8"), wide(b, "uint8"), wide(a, "int8"), wide(b, "int8")
    u2, v2, s2, t2 = wide(a, "uint16"), wide(b, "uint16"), wide(a, "int16"), wide(b, "int16")
    expected = [
        words(u4 + v4, "uint8"), words(np.clip(s2 - t2, -32768, 32767), "int16"), words(np.maximum(s4, t4), "int8"),
        words(np.minimum(u2, v2), "uint16"), words(abs(u4 - v4), "uint8"), abs(u4 - v4).sum(1).astype(np.uint32),
        words(np.where(s2 > t2, -1, 0), "int16"), words(np.minimum(u4 + v4, 255), "uint8"),
    ]  # fmt: skip
    assert (out == np.stack(expected, 1)).all()


def test_16_bit_values_convert_where_cuda_converts_them_and_only_there() -> None:
    source = """
    #include <cuda_fp16.h>
    #include <cuda_bf16.h>
    template <typename T> __global__ void convert(T* x, float* out) {
      x[0] = 3; x[1] = 2.75; x[2] = 1.5f; x[3] = threadIdx.x;
      T arr[2] = {}, y = T(-7.9f);
      double d = x[1]; float f = x[2]; int i = y; bool b = x[3];
      out[0] = x[0]; out[1] = d; out[2] = f; out[3] = i; out[4] = b ? 1 : 0; out[5] = arr[1];
      out[6] = (float)x[0] * 2; out[7] = expf(x[3]);
    }"""
    for kind, (_, dtype, _, _) in NARROW.items():
        _, out = results(source, f"convert<{kind}>", 1, 1, np.zeros(4, dtype), np.zeros(8, np.float32))
        assert out.tolist() == [3, 2.75, 1.5, -7, 0, 0, 6, 1]
    for expression in ("x[0] += h[0]", "x[0] = h[0] * 2.0f", "h[0] = max(h[0], h[1])"):
        with pytest.raises(CompileError, match="ambiguous"):
            DEVICE.compile(
                f"#include <cuda_fp16.h>\n__global__ void k(float* x, half* h) {{ {expression}; }}", ["k"]
            )
