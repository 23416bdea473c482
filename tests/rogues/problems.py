"""The problems of the gallery: references in NumPy and small example inputs, by the name that a `.cu` file's note gives."""

from __future__ import annotations

import numpy as np


def _normal(*shape, dtype=np.float32, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def _integers(low, high, shape, dtype):
    return np.random.default_rng(0).integers(low, high, shape, dtype=dtype)


def axpy(a, x, y):
    return a * x + y


def relu(x):
    return np.maximum(x, 0)


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def log_sum_exp(x):
    top = x.max(axis=-1, keepdims=True)
    return (top + np.log(np.exp(x - top).sum(axis=-1, keepdims=True)))[..., 0]


def row_sum(x):
    return x.sum(axis=-1)


def row_mean(x):
    return x.mean(axis=-1)


def variance(x):
    return x.var(axis=-1)


def layer_norm(x, w, b, eps):
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred / np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + eps) * w + b


def rms_norm(x, w, eps):
    return x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + eps) * w


def matmul(a, b):
    return a @ b


def stencil(x):
    y = x.copy()
    y[1:-1] = 0.25 * x[:-2] + 0.5 * x[1:-1] + 0.25 * x[2:]
    return y


def diffuse(x, steps):
    for _ in range(steps):
        x = stencil(x)
    return x


def top_two(x):
    order = np.argsort(-x, axis=-1, kind="stable")[:, :2]
    return np.take_along_axis(x, order, axis=-1), order


def saturating_add(x, y):
    return np.minimum(x.astype(np.uint16) + y, 255).astype(np.uint8)


def congruential(x):
    return x * np.int32(1664525) + np.int32(1013904223)


def minimum_and_maximum(x):
    return x.min(), x.max()


def tanh_gelu(x):
    v = x if x.dtype == np.float64 else x.astype(np.float32)
    return (0.5 * v * (1.0 + np.tanh(0.7978845608028654 * (v + 0.044715 * v * v * v)))).astype(x.dtype)


def sigmoid(x):
    return 1.0 / (1.0 + np.exp(-x))


def swish(x):
    return x * sigmoid(x)


def distances(a, b):
    d = a[:, None, :] - b[None, :, :]
    return np.sqrt((d * d).sum(axis=-1))


def scale_in_place(x):
    x *= 1.5


def accumulate(y, x):
    y += x


def masked_fill(x, mask):
    return np.where(mask, x, -np.inf).astype(x.dtype)


def closure_over(factor):
    def scaled(x):
        return x * factor

    return scaled


def square_weights(x):
    return x * (np.arange(x.size, dtype=np.float64) ** 2).astype(x.dtype)


def weighted_total(x, w):
    return (x * w).sum()


def inverse_root(x):
    return 1 / np.sqrt(np.abs(x))


def padded(ids, x, pad):
    return np.where((ids == pad)[:, None], x.dtype.type(0), 2 * x + 1)


def threshold(x, t):
    return np.where(x >= t, x, x.dtype.type(0))


def cross_entropy(logits, labels):
    top = logits.max(axis=-1, keepdims=True)
    total = (top + np.log(np.exp(logits - top).sum(axis=-1, keepdims=True)))[:, 0]
    counts = labels != -100
    return np.where(
        counts, total - logits[np.arange(labels.size), np.where(counts, labels, 0)], logits.dtype.type(0)
    )


def ragged_sum(x, lengths):
    return np.where(np.arange(x.shape[1]) < lengths[:, None], x, x.dtype.type(0)).sum(axis=-1)


def sparse_product(offsets, columns, values, x):
    y = np.zeros(offsets.size - 1, values.dtype)
    for row in range(y.size):
        part = slice(offsets[row], offsets[row + 1])
        y[row] = (values[part] * x[columns[part]]).sum()
    return y


def adam_step(p, m, v, g, t):
    m[:] = 0.9 * m + 0.1 * g
    v[:] = 0.999 * v + 0.001 * g * g
    p -= 1e-3 * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)


def quantize(x, scale):
    return np.clip(np.rint(x / scale), -128, 127).astype(np.int8)


def _offsets(rows, columns):
    counts = np.random.default_rng(0).integers(0, columns, rows)
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)


# Name to (reference, function that returns the example inputs).
PROBLEMS = {
    "abs": (np.abs, lambda: [_normal(300)]),
    "accumulate": (accumulate, lambda: [_normal(200), _normal(200, seed=1)]),
    "adam_step": (adam_step, lambda: [*(_normal(200, seed=i) ** (1 + i % 2) for i in range(4)), 10]),
    "add_one_int8": (lambda x: x + np.int8(1), lambda: [_integers(-128, 128, 300, np.int8)]),
    "add_uint64": (lambda x, y: x + y, lambda: [_integers(0, 2**63, 99, np.uint64)] * 2),
    "argmax": (lambda x: x.argmax(axis=-1), lambda: [_integers(0, 4, (9, 40), np.int32).astype(np.float32)]),
    "axpy": (axpy, lambda: [1.5, _normal(300), _normal(300, seed=1)]),
    "axpy_float64": (
        axpy,
        lambda: [1.5, _normal(300, dtype=np.float64), _normal(300, dtype=np.float64, seed=1)],
    ),
    "bias_4d": (lambda x, b: x + b[:, None, None], lambda: [_normal(2, 3, 5, 7), _normal(3)]),
    "closure": (closure_over(0.75), lambda: [_normal(150)]),
    "complex_multiply": (
        lambda x, y: x * y,
        lambda: [
            (_normal(150) + 1j * _normal(150, seed=1)).astype(np.complex64),
            _normal(150, seed=2) + 1j * np.float32(0.5),
        ],
    ),
    "copy": (np.copy, lambda: [_normal(300)]),
    "cross_entropy": (cross_entropy, lambda: [_normal(30, 12), _integers(0, 12, 30, np.int64)]),
    "cumprod": (lambda x: np.cumprod(x, axis=-1), lambda: [_normal(6, 24)]),
    "cumsum": (lambda x: np.cumsum(x, axis=-1), lambda: [_normal(6, 50)]),
    "cumsum_int32": (lambda x: np.cumsum(x, dtype=np.int64), lambda: [_integers(-100, 100, 300, np.int32)]),
    "diffuse": (diffuse, lambda: [_normal(100), 5]),
    "distances": (distances, lambda: [_normal(12, 3), _normal(15, 3, seed=1)]),
    "divide_int32": (
        lambda x, y: x // y,
        lambda: [_integers(-1000, 1000, 200, np.int32), _integers(1, 9, 200, np.int32)],
    ),
    "dot": (lambda x, y: x @ y, lambda: [_normal(500), _normal(500, seed=1)]),
    "exp": (np.exp, lambda: [_normal(300)]),
    "gather": (lambda x, index: x[index], lambda: [_normal(50), _integers(0, 50, 120, np.int64)]),
    "gelu_bfloat16": (tanh_gelu, lambda: [_as_bfloat16(_normal(300))]),
    "greater": (lambda x, y: x > y, lambda: [_normal(300), _normal(300, seed=1)]),
    "histogram": (
        lambda x, bins: np.bincount(x, minlength=bins).astype(np.int32),
        lambda: [_integers(0, 16, 500, np.int32), 16],
    ),
    "lcg": (congruential, lambda: [_integers(-(2**31), 2**31, 200, np.int32)]),
    "hypot": (np.hypot, lambda: [_normal(300), _normal(300, seed=1)]),
    "inverse_root": (inverse_root, lambda: [_normal(300, dtype=np.float64)]),
    "layer_norm": (layer_norm, lambda: [_normal(9, 48), _normal(48, seed=1), _normal(48, seed=2), 1e-5]),
    "log_sum_exp": (log_sum_exp, lambda: [_normal(9, 48)]),
    "masked_fill": (masked_fill, lambda: [_normal(200), _normal(200, seed=1) > 0]),
    "matmul": (matmul, lambda: [_normal(20, 24), _normal(24, 17, seed=1)]),
    "matmul_half": (
        lambda a, b: (a.astype(np.float32) @ b.astype(np.float32)) if a.dtype == np.float16 else a @ b,
        lambda: [_normal(32, 16, dtype=np.float16), _normal(16, 48, dtype=np.float16, seed=1)],
    ),
    "maximum": (np.maximum, lambda: [_normal(300), _normal(300, seed=1)]),
    "min_max": (minimum_and_maximum, lambda: [_normal(300)]),
    "nearest": (np.rint, lambda: [_normal(300) * np.float32(5)]),
    "negate_int16": (np.negative, lambda: [_integers(-30000, 30000, 300, np.int16)]),
    "norm3": (lambda x: (x * x).sum(axis=-1), lambda: [_normal(70, 3)]),
    "outer": (np.multiply.outer, lambda: [_normal(20), _normal(31, seed=1)]),
    "padded": (padded, lambda: [_integers(0, 50000, 9, np.int32), _normal(9, 20), np.int32(-100)]),
    "remainder": (np.remainder, lambda: [_integers(-1000, 1000, 300, np.int32), np.int32(7)]),
    "quantize": (quantize, lambda: [_normal(300), np.float32(0.05)]),
    "ragged_sum": (
        ragged_sum,
        lambda: [_normal(9, 48), np.array([48, 3, 17, 9, 30, 31, 7, 1, 20], np.int32)],
    ),
    "relu": (relu, lambda: [_normal(300)]),
    "reverse": (lambda x: np.ascontiguousarray(x[::-1]), lambda: [_normal(300)]),
    "rms_norm": (rms_norm, lambda: [_normal(9, 48), _normal(48, seed=1), 1e-6]),
    "row_max": (lambda x: x.max(axis=-1), lambda: [_normal(9, 48)]),
    "row_mean": (row_mean, lambda: [_normal(9, 48)]),
    "row_sum": (row_sum, lambda: [_normal(9, 48)]),
    "row_sum_bfloat16": (
        lambda x: (
            x.sum(axis=-1) if x.dtype == np.float64 else x.astype(np.float32).sum(axis=-1).astype(x.dtype)
        ),
        lambda: [_as_bfloat16(_normal(9, 48))],
    ),
    "row_sum_float64": (row_sum, lambda: [_normal(9, 48, dtype=np.float64)]),
    "row_sum_half": (
        lambda x: (
            x.sum(axis=-1, dtype=np.float32).astype(np.float16) if x.dtype == np.float16 else x.sum(axis=-1)
        ),
        lambda: [_normal(9, 48, dtype=np.float16)],
    ),
    "saturating_add": (saturating_add, lambda: [_integers(0, 256, 300, np.uint8)] * 2),
    "scale_half": (lambda x: x * np.float16(0.75), lambda: [_normal(300, dtype=np.float16)]),
    "scale_in_place": (scale_in_place, lambda: [_normal(200)]),
    "search": (np.searchsorted, lambda: [np.sort(_normal(60)), _normal(40, seed=1)]),
    "sigmoid": (sigmoid, lambda: [_normal(300)]),
    "softmax": (softmax, lambda: [_normal(9, 48)]),
    # Squares of its indices pass 2^31.
    "square_weights": (square_weights, lambda: [_normal(47_000)]),
    "sparse_product": (
        sparse_product,
        lambda: [
            _offsets(20, 12),
            _integers(0, 30, int(_offsets(20, 12)[-1]), np.int32),
            _normal(int(_offsets(20, 12)[-1])),
            _normal(30, seed=1),
        ],
    ),
    "sqrt": (np.sqrt, lambda: [_normal(300)]),
    "stencil": (stencil, lambda: [_normal(300)]),
    "swish": (swish, lambda: [_normal(300)]),
    "top_two": (top_two, lambda: [_integers(0, 9, (9, 30), np.int32).astype(np.float32)]),
    "total": (np.sum, lambda: [_normal(500)]),
    "total_large": (np.sum, lambda: [_normal(20001)]),
    "total_int64": (np.sum, lambda: [_integers(-(2**40), 2**40, 300, np.int64)]),
    "threshold": (threshold, lambda: [_normal(300), 0.3]),
    "transpose": (lambda x: np.ascontiguousarray(x.T), lambda: [_normal(20, 33)]),
    "tiny": (lambda x: x * x.dtype.type(1e-30), lambda: [_normal(300)]),
    "variance": (variance, lambda: [_normal(9, 48)]),
    "volume_sum": (lambda x: x.sum(axis=(1, 2)), lambda: [_normal(4, 5, 6)]),
    "weighted_total": (weighted_total, lambda: [_normal(300), _normal(300, seed=1)]),
    "xor_shift": (
        lambda x: (x << np.uint32(5)) ^ (x >> np.uint32(3)),
        lambda: [_integers(0, 2**32, 200, np.uint32)],
    ),
}


def _as_bfloat16(x):
    import ml_dtypes

    return x.astype(ml_dtypes.bfloat16)
