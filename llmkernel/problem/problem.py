"""A problem: reference, intent, signature, example inputs and the policies that judge a candidate."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from llmkernel.candidate.expressions import Expression, parse_expression
from llmkernel.errors import BindingError, LLMKernelError, ReferenceProblem
from llmkernel.problem.arrays import (
    HostArray,
    Kind,
    describe,
    from_numpy,
    is_array,
    is_on_gpu,
    kind_of,
    refuse_unusual_array,
    results_of,
    to_numpy,
    upcast,
    widened,
)
from llmkernel.problem.dtypes import DTYPES, dtype_name
from llmkernel.problem.names import header_name, header_names
from llmkernel.problem.reference import Reference
from llmkernel.problem.shapes import fit_output_dims, symbol_names, symbolic_dims
from llmkernel.problem.signature import ArraySpec, ScalarSpec, Signature
from llmkernel.problem.silence import silent_stdout
from llmkernel.problem.ties import untie
from llmkernel.problem.usage import Usage
from llmkernel.problem.workloads import draw_inputs, probe_sizes
from llmkernel.prompts.redaction import redact

HostInput = Any  # HostArray or a Python/NumPy scalar


@dataclass
class ReferenceRun:
    """What the reference computed for one draw, on the host.

    Attributes
    ----------
    results : list of numpy.ndarray
        In return order; empty when it returned nothing.
    inputs_after : list
        The inputs after the call: a reference may work in place.
    mutated : tuple of int
        Indices of the inputs that it changed.
    returns_tuple : bool
    has_undefined_casts : bool
        NumPy converted NaN, an infinity or too large a number to an integer: the result differs between processors.
    """

    results: list[HostArray]
    inputs_after: list[HostInput]
    mutated: tuple[int, ...]
    returns_tuple: bool
    has_undefined_casts: bool = False


@dataclass(frozen=True)
class Contract:
    """What the reference returns for the example, at its own dtypes.

    Attributes
    ----------
    dtypes : tuple of str
    shapes : tuple of tuple of int
    mutated : tuple of int
        Indices of inputs that the reference changes in place.
    returns_tuple : bool
    kind : str
        ``numpy``, ``cupy`` or ``torch``.
    is_on_gpu : bool
    """

    dtypes: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]
    mutated: tuple[int, ...]
    returns_tuple: bool
    kind: Kind
    is_on_gpu: bool


@dataclass
class Problem:
    """Everything that defines the right answer and how it is judged.

    Attributes
    ----------
    name : str
        Name of the callable that will be generated.
    intent : str
        The cell's text, verbatim.
    reference : Reference
    inputs : tuple
        The user's example, in the order of `signature.inputs`.
    signature : Signature
        Concrete dtypes, symbolic shapes.
    sizes : dict
        Symbol to its size in the example.
    contract : Contract
    tolerance : float or None
        The user's own relative tolerance, replacing the derived one.
    extra_sizes : tuple of dict
        Further workloads that the user asked for.
    usages : list of Usage or None
        How the reference uses each input; found when it is first asked for.
    """

    name: str
    intent: str
    reference: Reference
    inputs: tuple[Any, ...]
    signature: Signature
    sizes: dict[str, int]
    contract: Contract
    tolerance: float | None = None
    extra_sizes: tuple[dict[str, int], ...] = ()
    notes: tuple[str, ...] = field(default=())
    usages: list[Usage] | None = field(default=None, repr=False)
    _host: list[HostInput] | None = field(default=None, repr=False)

    def host_inputs(self) -> list[HostInput]:
        """Return the example on the host; copied once, and not to be changed."""
        if self._host is None:
            self._host = [to_numpy(v) if is_array(v) else v for v in self.inputs]
        return list(self._host)

    def drop_copies(self) -> None:
        """Let go of the host copies of the example; they are made again when needed."""
        self._host = None

    def run_reference(self, inputs: Sequence[HostInput], *, is_wide: bool = False) -> ReferenceRun:
        """Run the reference on host values, in its own framework and on the example's device.

        Parameters
        ----------
        inputs : sequence
            Host arrays and scalars, one for each input.
        is_wide : bool
            Convert floats to float64 and complex to complex128 first: the oracle.

        Raises
        ------
        llmkernel.errors.ReferenceProblem
            When the reference raises or returns something that is not an array.
        """
        return run_reference(self.reference, self.inputs, inputs, is_wide=is_wide)

    def run_reference_on_host(self, inputs: Sequence[HostInput]) -> ReferenceRun | None:
        """Run a reference over GPU tensors on tensors in host memory, in float64: torch's other implementation of it.

        Returns
        -------
        ReferenceRun or None
            None where the examples are no GPU tensors, or the reference does not run so.
        """
        if not any(kind_of(e) == "torch" and is_on_gpu(e) for e in self.inputs if is_array(e)):
            return None
        import torch

        examples = [torch.empty(0, dtype=e.dtype) if kind_of(e) == "torch" else e for e in self.inputs]
        try:
            return run_reference(self.reference, examples, inputs, is_wide=True)
        except ReferenceProblem:
            return None

    def evaluate_reference(self, inputs: Sequence[HostInput]) -> list[HostArray]:
        """Return the reference's results for host inputs; inputs changed in place count as results."""
        run = self.run_reference(inputs)
        return run.results or [run.inputs_after[i] for i in run.mutated]


def run_reference(
    reference: Reference, examples: Sequence[Any], inputs: Sequence[HostInput], *, is_wide: bool = False
) -> ReferenceRun:
    """Run a reference on host values; see `Problem.run_reference`."""
    given: list[Any] = []
    for value, example in zip(inputs, examples, strict=True):
        if isinstance(value, np.ndarray) and is_array(example):
            moved = from_numpy(value, example)
            given.append(upcast(moved) if is_wide else moved)
        else:
            given.append(value)
    marks = [getattr(g, "_version", None) for g in given]
    try:
        # What a reference prints it would print once a draw.
        with (
            np.errstate(all="ignore", invalid="warn"),
            warnings.catch_warnings(record=True) as casts,
            silent_stdout(),
        ):
            warnings.simplefilter("ignore")
            warnings.filterwarnings("always", message="invalid value encountered in cast")
            returned = _without_gradients(reference, given)
        has_casts = any("in cast" in str(c.message) for c in casts)
    except (KeyboardInterrupt, LLMKernelError):
        raise
    except BaseException as error:  # SystemExit too: it must end neither the cell nor the kernel
        raise ReferenceProblem(
            f"The reference raised {type(error).__name__}{f': {redact(str(error))}'[:300] if str(error) else '.'}",
            rule="the reference computes the right answer for every workload it is given",
            received=", ".join(describe(v) for v in inputs),
            next_step="Call the reference on its own with the example inputs and correct it.",
        ) from error
    after: list[HostInput] = list(inputs)
    mutated = []
    for i, (value, now, mark) in enumerate(zip(inputs, given, marks, strict=True)):
        # torch counts in-place changes; what it says is unchanged need not be copied back to be compared.
        if not isinstance(value, np.ndarray) or (mark is not None and now._version == mark):  # noqa: SLF001
            continue
        host = to_numpy(now)
        if not _same_bits(host, widened(value) if is_wide else value):
            after[i] = host
            mutated.append(i)
    if returned is None:
        return ReferenceRun([], after, tuple(mutated), returns_tuple=False, has_undefined_casts=has_casts)
    items, returns_tuple = results_of(returned)
    results = [_host_result(r) for r in items]
    return ReferenceRun(results, after, tuple(mutated), returns_tuple, has_casts)


def _host_result(value: Any) -> HostArray:
    what = "A result of the reference"
    refuse_unusual_array(what, value)
    host: HostArray = to_numpy(value) if is_array(value) else np.asarray(value)
    try:
        dtype_name(host.dtype)
    except BindingError as error:
        raise ReferenceProblem(
            f"{what}: {error.what}", rule=error.rule, received=error.received, next_step=error.next_step
        ) from None
    return host


def _without_gradients(reference: Reference, given: list[Any]) -> Any:
    if any(kind_of(g) == "torch" for g in given):
        import torch

        with torch.no_grad():
            return reference.call(given)
    return reference.call(given)


def _same_bits(a: HostArray, b: HostArray) -> bool:
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    x, y = (np.ascontiguousarray(v).reshape(-1).view(np.uint8) for v in (a, b))
    return bool(np.array_equal(x, y))


def make_problem(
    reference: Reference,
    inputs: Sequence[Any],
    *,
    intent: str = "",
    name: str | None = None,
    tolerance: float | None = None,
    extra_sizes: Sequence[dict[str, int]] = (),
) -> Problem:
    """Run the reference once on the example and infer the signature.

    Raises
    ------
    llmkernel.errors.ReferenceProblem
        When the reference does not work on the example, or an input cannot go into a kernel.
    """
    for parameter, value in zip(reference.parameters, inputs, strict=True):
        _check_input(parameter, value)
    host = [to_numpy(v) if is_array(v) else v for v in inputs]
    run = run_reference(reference, inputs, host)
    if not run.results and not run.mutated:
        raise ReferenceProblem(
            "The reference returned nothing and changed none of its inputs.",
            rule="a reference returns its result, or writes it into one of its inputs",
            received="None",
            next_step="Add a return statement.",
        )
    contract = _contract(run, inputs)
    shapes = {
        p: v.shape for p, v in zip(reference.parameters, host, strict=True) if isinstance(v, np.ndarray)
    }
    names = header_names(reference.parameters)
    taken = (*reference.parameters, *names)
    dims, sizes = symbolic_dims(reference.function, shapes, taken=taken)
    specs: list[ArraySpec | ScalarSpec] = []
    for i, (p, v) in enumerate(zip(reference.parameters, host, strict=True)):
        if isinstance(v, np.ndarray):
            expressions = tuple(parse_expression(d) for d in dims[p])
            inout = i in run.mutated
            specs.append(ArraySpec(names[i], dtype_name(v.dtype), expressions, is_inout=inout))
        else:
            specs.append(ScalarSpec(names[i], scalar_dtype(v, host)))
    problem = Problem(
        name=name or reference.name,
        intent=intent,
        reference=reference,
        inputs=tuple(inputs),
        signature=Signature(header_name(name or reference.name), tuple(specs), ()),
        sizes=sizes,
        contract=contract,
        tolerance=tolerance,
        extra_sizes=tuple(extra_sizes),
    )
    untie(problem, dims, symbol_names(shapes, taken), run)
    _fix_sizes(problem)
    outputs = tuple(
        ArraySpec(n, d, tuple(parse_expression(x) for x in dims_))
        for n, d, dims_ in zip(
            _output_names(problem), contract.dtypes, _output_dims(problem, run), strict=True
        )
    )
    problem.signature = replace(problem.signature, outputs=outputs)
    return problem


def scalar_dtype(value: Any, others: Sequence[Any] = ()) -> str:
    """Return the dtype that a scalar input has in a signature.

    Python numbers take the width that the arrays around them suggest: float64 beside float64 arrays, else float32.
    """
    if isinstance(value, np.generic):
        return dtype_name(value.dtype)
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "int32" if -(2**31) <= value < 2**31 else "int64"
    is_wide = any(isinstance(v, np.ndarray) and v.dtype in (np.float64, np.complex128) for v in others)
    if isinstance(value, complex):
        return "complex128" if is_wide else "complex64"
    return "float64" if is_wide else "float32"


def _check_input(parameter: str, value: Any) -> None:
    if not is_array(value):
        return
    refuse_unusual_array(parameter, value)
    try:
        dtype_name(value.dtype)
    except BindingError as error:
        raise ReferenceProblem(
            f"{parameter}: {error.what}", rule=error.rule, received=error.received, next_step=error.next_step
        ) from None


def _contract(run: ReferenceRun, inputs: Sequence[Any]) -> Contract:
    results = run.results or [run.inputs_after[i] for i in run.mutated]
    arrays = [v for v in inputs if is_array(v)]
    kinds = [kind_of(v) for v in arrays]
    kind: Kind = next((k for k in ("torch", "cupy") if k in kinds), "numpy")
    return Contract(
        dtypes=tuple(dtype_name(r.dtype) for r in run.results),
        shapes=tuple(tuple(r.shape) for r in run.results) or tuple(tuple(r.shape) for r in results),
        mutated=run.mutated,
        returns_tuple=run.returns_tuple,
        kind=kind,
        is_on_gpu=any(is_on_gpu(v) for v in arrays),
    )


def _fix_sizes(problem: Problem) -> None:
    """Make literal what the reference does not let vary: axes that meet a module's weights or a captured array."""
    if not problem.sizes or any(_accepts(problem, sizes) for sizes in probe_sizes(problem.sizes)):
        return
    fixed = {
        s: size for s, size in problem.sizes.items() if not _accepts(problem, {**problem.sizes, s: size + 1})
    }
    if not fixed:
        return

    def settled(dim: Expression) -> Expression:
        return parse_expression(str(fixed[str(dim)])) if str(dim) in fixed else dim

    problem.sizes = {s: n for s, n in problem.sizes.items() if s not in fixed}
    inputs = tuple(
        replace(s, dims=tuple(settled(d) for d in s.dims)) if isinstance(s, ArraySpec) else s
        for s in problem.signature.inputs
    )
    problem.signature = replace(problem.signature, inputs=inputs)


def _accepts(problem: Problem, sizes: dict[str, int]) -> bool:
    try:
        problem.run_reference(draw_inputs(problem, sizes, "normal", seed=1))
    except LLMKernelError:
        return False
    return True


def _output_names(problem: Problem) -> list[str]:
    count = len(problem.contract.dtypes)
    taken = {s.name for s in problem.signature.inputs}
    names = ["y"] if count == 1 else [f"y{i}" for i in range(count)]
    return [n if n not in taken else f"out_{n}" for n in names]


def _output_dims(problem: Problem, run: ReferenceRun) -> list[tuple[str, ...]]:
    scalars: dict[str, int] = {
        s.name: int(v)
        for s, v in zip(problem.signature.inputs, problem.inputs, strict=True)
        if isinstance(v, int | np.integer) and not isinstance(v, bool)
    }
    observed: list[list[tuple[Mapping[str, int], tuple[int, ...]]]] = [
        [(problem.sizes, r.shape)] for r in run.results
    ]
    for sizes in probe_sizes(problem.sizes):
        try:
            inputs = draw_inputs(problem, sizes, "normal", seed=1)
            other = problem.run_reference(inputs)
        except LLMKernelError:
            continue
        _require_fixed_shapes(problem, sizes, other)
        if len(other.results) == len(observed):
            for seen, result in zip(observed, other.results, strict=True):
                seen.append((sizes, result.shape))
    dims = []
    for seen in observed:
        found = fit_output_dims(seen, scalars) or fit_output_dims(seen[:1], scalars)
        assert found is not None
        dims.append(found)
    return dims


def _require_fixed_shapes(problem: Problem, sizes: dict[str, int], seen: ReferenceRun) -> None:
    """Refuse a reference whose results have other shapes for other values of the same sizes."""
    for family in ("normal", "small integers"):
        try:
            other = problem.run_reference(draw_inputs(problem, sizes, family, seed=2))
        except LLMKernelError:
            continue
        shapes = [r.shape for r in seen.results], [r.shape for r in other.results]
        if shapes[0] != shapes[1]:
            raise ReferenceProblem(
                "The shape of the reference's result depends on the values of its inputs.",
                rule="a kernel's outputs have shapes that follow from the shapes of its inputs",
                received=f"{_shapes(shapes[0])} and {_shapes(shapes[1])} for inputs of the same shapes",
                next_step="Return an array of the greatest possible size, and the number of elements that count.",
            )


def _shapes(shapes: Sequence[tuple[int, ...]]) -> str:
    return ", ".join("[" + ", ".join(map(str, s)) + "]" for s in shapes) or "no result"


def element_kind(dtype: str) -> str:
    """Return ``f``, ``i``, ``u``, ``b`` or ``c`` for a dtype's name."""
    return DTYPES[dtype].kind
