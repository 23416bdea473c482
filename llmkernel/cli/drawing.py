"""Inputs drawn from a launch header's signature, for a file that comes without any."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from llmkernel.candidate.header import parse_header
from llmkernel.errors import UsageError
from llmkernel.problem.arrays import HostArray, from_numpy
from llmkernel.problem.dtypes import DTYPES
from llmkernel.problem.families import FAMILIES, float_array
from llmkernel.problem.signature import ArraySpec, ScalarSpec, Signature

# All different, so that no two axes look tied.
_SIZES = (96, 160, 64, 48, 80, 32, 112, 24)
_SCALARS = {"b": True, "i": 3, "u": 3, "f": 0.5, "c": 0.5 + 0.25j}


def draw(source: str, shapes: str, dtype: str, arrays: str, seed: int) -> list[Any]:
    """Return inputs for the header of `source`, the same for the same arguments.

    Parameters
    ----------
    source : str
        A candidate.
    shapes : str
        ``M=64,N=1000,eps=1e-5``: sizes and scalars by name; the others have defaults.
    dtype : str
        ``float16`` for every type variable, or ``T=float16,U=int32``; the default is the first that the
        header allows.
    arrays : str
        ``numpy``, ``torch`` or ``cupy``.
    seed : int

    Returns
    -------
    list
        Floats are normal, integers lie from 0 up to the smallest size, so that they can index any axis.

    Raises
    ------
    llmkernel.errors.UsageError
        Names what the signature does not have or does not allow.
    llmkernel.errors.HeaderError
        When the header cannot be parsed.
    """
    signature = parse_header(source).signature
    given = _values(shapes, "--shapes")
    types = _types(signature, dtype)
    scalars = {s.name: _scalar(s, types, given) for s in signature.inputs if isinstance(s, ScalarSpec)}
    sizes = _sizes(signature, scalars, given)
    rng = np.random.default_rng(seed)
    like = _like(arrays)
    drawn = []
    for spec in signature.inputs:
        if isinstance(spec, ScalarSpec):
            drawn.append(scalars[spec.name])
            continue
        shape = tuple(d.evaluate({**sizes, **scalars}) for d in spec.dims)
        if any(n < 0 for n in shape):
            raise UsageError(
                f"{spec.name} would have a negative size.",
                rule=str(spec),
                received=str(list(shape)),
                next_step="Choose other sizes with --shapes.",
            )
        name = types.get(spec.dtype, spec.dtype)
        drawn.append(from_numpy(_array(rng, shape, name, bound=min(sizes.values(), default=2)), like))
    return drawn


def _array(rng: np.random.Generator, shape: tuple[int, ...], dtype: str, *, bound: int) -> HostArray:
    kind = DTYPES[dtype].kind
    if kind in "fc":
        return float_array(FAMILIES["normal"], rng, shape, dtype)
    if kind == "b":
        return rng.integers(0, 2, shape).astype(np.bool_)
    return rng.integers(0, max(min(bound, 100), 1), shape).astype(DTYPES[dtype].numpy)


def _like(arrays: str) -> Any:
    if arrays == "numpy":
        return np.empty(0)
    try:
        if arrays == "torch":
            import torch

            return torch.empty(0)
        import cupy

        return cupy.empty(0)
    except Exception as error:  # a missing package, or CuPy without a GPU
        raise UsageError(
            f"--arrays {arrays} cannot be used here.",
            received=f"{type(error).__name__}: {error}",
            next_step="Leave it out for NumPy arrays.",
        ) from error


def _values(text: str, option: str) -> dict[str, str]:
    values = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        name, equals, value = (part.strip() for part in item.partition("="))
        if not equals or not name.isidentifier() or not value:
            raise UsageError(
                f"{option} cannot be understood.",
                rule="it is written NAME=VALUE, with commas between",
                received=item,
                next_step=f"For example {option} M=64,N=1000.",
            )
        values[name] = value
    return values


def _types(signature: Signature, text: str) -> dict[str, str]:
    variables = dict(signature.type_variables)
    chosen = {name: allowed[0] for name, allowed in variables.items()}
    text = text.strip()
    named = _values(text, "--dtype") if "=" in text else dict.fromkeys(chosen or ["T"], text) if text else {}
    for name, value in named.items():
        if value not in variables.get(name, ()):
            choices = "; ".join(f"{n} is one of {', '.join(a)}" for n, a in variables.items())
            raise UsageError(
                f"--dtype: {name} cannot be {value}.",
                rule=choices or "this header has no type variables",
                received=text,
                next_step="Choose one of these." if choices else "Leave --dtype out.",
            )
        chosen[name] = value
    return chosen


def _sizes(signature: Signature, scalars: dict[str, Any], given: dict[str, str]) -> dict[str, int]:
    symbols: list[str] = []
    for spec in signature.inputs:
        if isinstance(spec, ArraySpec):
            symbols += [
                n for d in spec.dims for n in sorted(d.names) if n not in scalars and n not in symbols
            ]
    unknown = [name for name in given if name not in symbols and name not in scalars]
    if unknown:
        raise UsageError(
            f"--shapes: the signature has no {unknown[0]}.",
            rule=f"{signature} has " + (", ".join([*symbols, *scalars]) or "neither sizes nor scalars"),
            received=unknown[0],
            next_step="Name only these.",
        )
    defaults = dict(zip(symbols, _SIZES * (len(symbols) // len(_SIZES) + 1), strict=False))
    return {name: _size(name, given[name]) if name in given else defaults[name] for name in symbols}


def _size(name: str, text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,12}", text):
        raise UsageError(
            f"--shapes: {name} is not a size.",
            rule="a size is a whole number from 0",
            received=text,
            next_step=f"For example {name}=1000.",
        )
    return int(text)


def _scalar(spec: ScalarSpec, types: dict[str, str], given: dict[str, str]) -> Any:
    kind = DTYPES[types.get(spec.dtype, spec.dtype)].kind
    text = given.get(spec.name)
    if text is None:
        return _SCALARS[kind]
    try:
        if kind == "b":
            return {"true": True, "false": False, "1": True, "0": False}[text.lower()]
        return int(text) if kind in "iu" else float(text) if kind == "f" else complex(text)
    except (KeyError, ValueError):
        raise UsageError(
            f"--shapes: {spec.name} is not a value for {spec}.",
            received=text,
            next_step="Write true or false." if kind == "b" else "Write a number.",
        ) from None
