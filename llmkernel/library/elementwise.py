"""Elementwise maps of one array, of two arrays, and of rows with a bias: one `.cu` file each, many maps."""

from __future__ import annotations

from collections.abc import Callable
from math import erf, pi, sqrt

import numpy as np

from llmkernel.library.entry import Array, Entry, Scalar


def _erf(x: Array) -> Array:
    # Without SciPy: the C library's erf, element by element; only small arrays come here.
    y: Array = np.vectorize(erf, otypes=[np.float64])(x)
    return y


def gelu_erf(x: Array) -> Array:
    """Return the exact GELU."""
    y: Array = 0.5 * x * (1 + _erf(x / sqrt(2)))
    return y


def gelu_tanh(x: Array) -> Array:
    """Return the GELU with the tanh approximation (Hendrycks and Gimpel 2016)."""
    y: Array = 0.5 * x * (1 + np.tanh(sqrt(2 / pi) * (x + 0.044715 * x**3)))
    return y


def sigmoid(x: Array) -> Array:
    """Return the logistic function."""
    y: Array = 1 / (1 + np.exp(-x))
    return y


def silu(x: Array) -> Array:
    """Return ``x * sigmoid(x)``."""
    return x * sigmoid(x)


def relu(x: Array) -> Array:
    """Return the positive part; NaN stays."""
    return np.maximum(x, 0)


def softplus(x: Array) -> Array:
    """Return ``log(1 + exp(x))``."""
    return np.logaddexp(0, x)


def mish(x: Array) -> Array:
    """Return ``x * tanh(softplus(x))``."""
    return x * np.tanh(softplus(x))


_RELU = "{x} < A(0) ? A(0) : {x}"
_SIGMOID = "A(1) / (A(1) + exp(-({x})))"
_SILU = "({x}) / (A(1) + exp(-({x})))"
_GELU_ERF = "A(0.5) * ({x}) * (A(1) + erf(({x}) * A(0.70710678118654752)))"
_GELU_TANH = (
    "A(0.5) * ({x}) * (A(1) + tanh(A(0.79788456080286536) * (({x}) + A(0.044715) * ({x}) * ({x}) * ({x}))))"
)
_SOFTPLUS = "fmax({x}, A(0)) + log1p(exp(-fabs({x})))"

# name: title, C++ expression, NumPy, keywords
_UNARY: dict[str, tuple[str, str, Callable[[Array], Array], tuple[str, ...]]] = {
    "relu": ("rectified linear unit", _RELU, relu, ("relu", "rectif", "clamp")),
    "gelu_erf": ("exact GELU", _GELU_ERF, gelu_erf, ("gelu", "erf", "exact")),
    "gelu_tanh": ("GELU, tanh approximation", _GELU_TANH, gelu_tanh, ("gelu", "tanh", "approx")),
    "silu": ("SiLU (swish)", _SILU, silu, ("silu", "swish")),
    "sigmoid": ("logistic function", _SIGMOID, sigmoid, ("sigmoid", "logistic")),
    "tanh": ("hyperbolic tangent", "tanh({x})", np.tanh, ("tanh", "hyperbolic")),
    "exp": ("exponential", "exp({x})", np.exp, ("exp", "exponential")),
    "softplus": ("softplus", _SOFTPLUS, softplus, ("softplus",)),
    "square": ("square", "({x}) * ({x})", np.square, ("square", "power")),
    "absolute": ("absolute value", "fabs({x})", np.abs, ("abs", "absolute", "magnitude")),
    "mish": ("mish", "({x}) * tanh(" + _SOFTPLUS + ")", mish, ("mish",)),
    "copy": ("copy", "{x}", np.array, ("copy", "identity")),
}

_BINARY: dict[str, tuple[str, str, Callable[[Array, Array], Array], tuple[str, ...]]] = {
    "add": ("sum of two arrays", "a + b", np.add, ("add", "sum", "vector", "residual")),
    "subtract": ("difference of two arrays", "a - b", np.subtract, ("subtract", "difference")),
    "multiply": ("product of two arrays", "a * b", np.multiply, ("multiply", "product", "hadamard")),
    "divide": ("quotient of two arrays", "a / b", np.divide, ("divide", "quotient", "ratio")),
    "squared_difference": (
        "squared difference",
        "(a - b) * (a - b)",
        lambda a, b: (a - b) ** 2,
        ("squared", "difference", "error"),
    ),
    "swiglu": (
        "SwiGLU: silu(gate) * value",
        _SILU.format(x="a") + " * b",
        lambda a, b: silu(a) * b,
        ("swiglu", "silu", "swish", "gate", "gated"),
    ),
    "geglu_erf": (
        "GEGLU: exact gelu(gate) * value",
        _GELU_ERF.format(x="a") + " * b",
        lambda a, b: gelu_erf(a) * b,
        ("geglu", "gelu", "gate", "gated"),
    ),
    "geglu_tanh": (
        "GEGLU: tanh gelu(gate) * value",
        _GELU_TANH.format(x="a") + " * b",
        lambda a, b: gelu_tanh(a) * b,
        ("geglu", "gelu", "tanh", "gate", "gated"),
    ),
    "add_relu": (
        "relu of a sum",
        _RELU.format(x="(a + b)"),
        lambda a, b: relu(a + b),
        ("relu", "residual", "add"),
    ),
}

_BIAS: dict[str, tuple[str, str, Callable[[Array], Array], tuple[str, ...]]] = {
    "add": ("rows plus a bias", "{x}", np.array, ("add",)),
    **{name: _UNARY[name] for name in ("relu", "gelu_erf", "gelu_tanh", "silu", "sigmoid", "tanh")},
}


def _after_bias(function: Callable[[Array], Array]) -> Callable[[Array, Array], Array]:
    return lambda x, bias: function(x + bias)


_FACTOR = Scalar(draw=lambda rng: float(rng.uniform(-2, 2)), usual=(1.0, -1.0, 0.0, 0.5))

ENTRIES = (
    *(
        Entry(
            name=name,
            title=title,
            file="elementwise.cu",
            reference=function,
            keywords=keywords,
            tags=("elementwise", "memory-bound"),
            leading="N",
            map=expression.format(x="x"),
        )
        for name, (title, expression, function, keywords) in _UNARY.items()
    ),
    *(
        Entry(
            name=name,
            title=title,
            file="elementwise_pair.cu",
            reference=function,
            keywords=keywords,
            tags=("elementwise", "memory-bound"),
            leading="N",
            map=expression,
        )
        for name, (title, expression, function, keywords) in _BINARY.items()
    ),
    *(
        Entry(
            name=f"bias_{name}",
            title=title if name == "add" else f"{title} of rows plus a bias",
            file="elementwise_bias.cu",
            reference=_after_bias(function),
            keywords=(*keywords, "bias"),
            tags=("elementwise", "memory-bound"),
            leading="M",
            map=expression.format(x="x"),
        )
        for name, (title, expression, function, keywords) in _BIAS.items()
    ),
    Entry(
        name="affine",
        title="alpha * x + beta",
        file="affine.cu",
        reference=lambda x, alpha, beta: alpha * x + beta,
        keywords=("scale", "shift", "affine"),
        tags=("elementwise", "memory-bound"),
        leading="N",
        scalars={"alpha": _FACTOR, "beta": _FACTOR},
    ),
    Entry(
        name="axpby",
        title="alpha * a + beta * b",
        file="axpby.cu",
        reference=lambda a, b, alpha, beta: alpha * a + beta * b,
        keywords=("axpy", "saxpy", "scale", "blend"),
        tags=("elementwise", "memory-bound"),
        leading="N",
        scalars={"alpha": _FACTOR, "beta": _FACTOR},
    ),
)
