"""The judge: compile, quick check, full verification; one report at the end, whatever the candidate does."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from llmkernel.candidate.candidate import Candidate
from llmkernel.devices.base import DeviceLimits, ExecutionOptions
from llmkernel.devices.plan import LaunchPlan
from llmkernel.errors import (
    BindingError,
    CompileError,
    LaunchError,
    LLMKernelError,
    PreconditionError,
    ReferenceProblem,
    UnsupportedFeatureError,
)
from llmkernel.evaluation.aside import Aside, Compilation
from llmkernel.evaluation.binding import match_slots, prepare, shape_arguments, takes_strides
from llmkernel.evaluation.branches import workloads_for_branches
from llmkernel.evaluation.checks import DRAW_CHECKS
from llmkernel.evaluation.controls import TrivialControls
from llmkernel.evaluation.draw import Draw, Finding
from llmkernel.evaluation.expected import expect
from llmkernel.evaluation.judge_text import binding_finding, one_message, short
from llmkernel.evaluation.leftovers import check_leftovers, is_telling
from llmkernel.evaluation.overflow import refuse_overflows
from llmkernel.evaluation.precision import draws_needed, is_downgraded, moved_inputs
from llmkernel.evaluation.races import THREAD_ORDER, explained_race
from llmkernel.evaluation.reduction import ReductionLengths
from llmkernel.evaluation.report import CheckResult
from llmkernel.evaluation.steadiness import is_doubtful, unsteadiness
from llmkernel.evaluation.tools import explained_fault
from llmkernel.evaluation.trial import Listener, Trial, Verdict
from llmkernel.evaluation.worker.client import POOL, WorkerLostError
from llmkernel.problem.problem import HostInput, Problem
from llmkernel.problem.workloads import (
    Workload,
    at_own_sizes,
    draw_inputs,
    full_workloads,
    new_seed,
    quick_workloads,
)

QUICK_REPEATS = 2
FULL_REPEATS = 8
LARGE_ELEMENTS = 1 << 22
# A few tenths of a second of emulation.
EMULATED_THREADS = 1 << 21


class Judge(Trial):
    """Judges one candidate against one problem; `close` ends it. Takes what `Trial` takes, after the problem."""

    def __init__(
        self,
        problem: Problem,
        source: str,
        device: str,
        *,
        timeout: float = 20.0,
        arch: str | None = None,
        on_check: Listener | None = None,
    ) -> None:
        super().__init__(source, device, timeout=timeout, arch=arch, on_check=on_check)
        self.problem = problem
        self.draws: list[Draw] = []
        self.dropped: list[str] = []
        self.has_oracle: bool | None = None
        self._lengths: ReductionLengths | None = None
        self._controls = TrivialControls()
        self.aside = Aside(device, timeout)
        self._whole: Compilation | None = None
        self._prepared: tuple[Workload | None, Draw | None] = (None, None)
        self.on_close: list[Callable[[], None]] = [self.aside.end]

    # ---- stages ---------------------------------------------------------------------------------------------

    def compile(
        self, workloads: Sequence[Workload], limits: DeviceLimits, *, first: Sequence[Workload] = ()
    ) -> list[Workload]:
        """Plan all workloads by their shapes and compile every kernel that they launch.

        Where `first` needs fewer kernels, the whole is compiled aside meanwhile: `use_whole_module` waits for it.

        Returns the workloads that the header takes; the user's own must be among them.
        """
        assert self.candidate is not None
        wanted: dict[str, None] = {}
        kernels: dict[str, None] = {}
        planned: list[tuple[Workload, LaunchPlan]] = []
        for workload in workloads:
            plan = self._plan_by_shape(workload, limits)
            if plan is None:
                # The header excludes these sizes; what they would have shown can still be asked at the user's own.
                other = at_own_sizes(self.problem, workload)
                if other is None or (other.layout == "strided" and not takes_strides(self.candidate)):
                    continue
                workload, plan = other, self._plan_by_shape(other, limits)
            if plan is not None:
                kernels.update(dict.fromkeys(plan.kernels()))
                if workload in first:
                    wanted.update(dict.fromkeys(plan.kernels()))
                planned.append((workload, plan))
        if any(not w.is_users_own and w.family != "normal" for w, _ in planned):  # a full verification
            planned += workloads_for_branches(self, [plan for _, plan in planned], limits)
            kernels.update(dict.fromkeys(k for _, plan in planned for k in plan.kernels()))
        refuse_overflows(self, planned, limits)
        names = list(kernels) or list(self.candidate.name_expressions(_types(self.candidate, self.problem)))
        if wanted and len(wanted) < len(names):
            self._whole = self.aside.begin(self.source, names, self.arch)
        self._compile_first(names if self._whole is None else list(wanted), planned[:1], limits)
        POOL.warm(self.device)
        if self._whole is None:
            self._note_compiled()
        return [workload for workload, _ in planned]

    def _compile_first(
        self, names: list[str], planned: Sequence[tuple[Workload, LaunchPlan]], limits: DeviceLimits
    ) -> None:
        """Compile, and meanwhile ask the reference about the first workload."""
        assert self.session is not None
        begun = self.aside.begin_here(self.session, self.source, names, self.arch)
        if begun is None:
            self.compile_kernels(names, limits)
            return
        error: Exception | None = None
        try:
            for workload, _ in planned:
                self._prepared = workload, self.prepare_draw(workload, limits)
        except (Verdict, LLMKernelError) as failed:
            error = failed
        # What the compiler says comes first.
        self.compile_kernels(names, limits, ask=begun.wait)
        if error is not None:
            raise error

    def use_whole_module(self, limits: DeviceLimits) -> None:
        """Go on with the module of every kernel, once it is there; raises `Verdict` where the compiler refuses one."""
        whole = self._whole
        if whole is None or self.session is None:
            return
        self._whole = None
        try:
            whole.wait()
        except (CompileError, UnsupportedFeatureError):
            pass  # reported below
        except (WorkerLostError, LLMKernelError):
            # No second worker, as on a GPU without memory for another context: this one compiles it all.
            self.compile_kernels(list(whole.kernels), limits)
            self._note_compiled()
            return
        self.compile_kernels(list(whole.kernels), limits, ask=whole.wait)
        self.session = self.aside.swap(self.session, whole)
        self._note_compiled()

    def _note_compiled(self) -> None:
        count = len(self.compiled["names"])
        self.done("compile", f"{count} kernel{'s' if count != 1 else ''} in {self.compiled['seconds']:.2f} s")

    def execute(self, workloads: Sequence[Workload], limits: DeviceLimits, *, is_full: bool) -> None:
        """Run each workload and check it; raises `Verdict` at the first that fails."""
        has_leftovers = False
        for number, workload in enumerate(workloads):
            known, draw = self._prepared
            self._prepared = None, None
            if known is not workload:
                draw = self.prepare_draw(workload, limits)
            if draw is None:
                continue
            repeats = QUICK_REPEATS
            if is_full and size_of(draw) <= LARGE_ELEMENTS:
                repeats = FULL_REPEATS if number == 0 else QUICK_REPEATS + (not workload.is_long)
            self._run(draw, repeats=repeats)
            self.draws.append(draw)
            self.inspect_draw(draw, limits)
            if size_of(draw) <= LARGE_ELEMENTS or not self.problem.sizes:
                self._controls.see(draw)
            is_small = size_of(draw) <= LARGE_ELEMENTS // 4
            if is_full and is_small and not has_leftovers and is_telling(workload):
                has_leftovers = True
                check_leftovers(self, draw, limits)
            # Only figures are kept: memory stays a bounded multiple of one draw's.
            draw.release()

    def note_occupancy(self) -> None:
        """Add to the compiled kernels' resources the occupancy that the user's own sizes give them."""
        own = next((d for d in self.draws if d.workload.is_users_own and d.plan.launches), None)
        if own is None or self.session is None or self.device == "cpu":
            return
        for name, fraction in self.session.occupancy(own.plan).items():
            if name in self.compiled["kernels"]:
                self.compiled["kernels"][name]["occupancy"] = fraction

    def finish_checks(self) -> None:
        """Report the draw checks that passed, and look at the trivial controls."""
        for check in DRAW_CHECKS:
            if check.name == THREAD_ORDER and not any(d.orders for d in self.draws):
                if check.name not in self.checks:
                    why = "a GPU chooses its own order; repeated runs stand for it"
                    self.add(CheckResult(check.name, "not_applicable", why))
                continue
            note = check.warning(self.draws)
            if note:
                self.warnings.append(note)
                self.add(CheckResult(check.name, "warning", note))
            else:
                self.done(check.name, f"{check.covers}, over {len(self.draws)} draws")
        control = self._controls.passing()
        if control is not None:
            raise Verdict(Finding("inconclusive", control), "trivial controls")
        self.done(
            "trivial controls", "zeros, a constant, a copy of an input and another draw's result all fail"
        )

    def close(self) -> None:
        """End what still runs aside."""
        for end in self.on_close:
            end()

    # ---- pieces ---------------------------------------------------------------------------------------------

    def _plan_by_shape(self, workload: Workload, limits: DeviceLimits) -> LaunchPlan | None:
        assert self.candidate is not None
        if workload.layout == "strided" and not takes_strides(self.candidate):
            return None
        try:
            arguments = shape_arguments(self.problem, self.candidate, workload)
            return self.candidate.plan(arguments, limits)
        except LLMKernelError as error:
            self._refuse(error, workload)
            return None

    def _refuse(self, error: LLMKernelError, workload: Workload) -> None:
        """List a workload that the header does not take; raise where it has to."""
        own = workload.family == "example"
        if isinstance(error, PreconditionError):
            if own:
                what = f"The header's `require` excludes the user's own inputs. {short(error.what)}"
                raise Verdict(Finding("rejected", what, {"rule": "require"}), "static rules") from None
            self.dropped.append(f"{workload.label()}: excluded by the header ({short(error.what)})")
        elif isinstance(error, BindingError):
            if own or error.reason == "count":
                raise Verdict(binding_finding(error, workload), "shapes and dtypes") from None
            self.dropped.append(f"{workload.label()}: {short(error.what)}")
        elif (workload.is_long or workload.scalars == "negated") and isinstance(error, LaunchError):
            # Callers get this error there, and no wrong result.
            self.dropped.append(f"{workload.label()}: beyond the launch limits ({short(error.what)})")
        else:
            outcome = "launch_failed" if isinstance(error, LaunchError) else "rejected"
            evidence = {"line": getattr(error, "line", 0), "workload": workload.label()}
            what = f"{one_message(error)} At {workload.label()}."
            raise Verdict(Finding(outcome, what, evidence), "launch limits") from None

    def prepare_draw(
        self, workload: Workload, limits: DeviceLimits, inputs: list[HostInput] | None = None
    ) -> Draw | None:
        """Return a draw that is ready to run, of given inputs or of the workload's own; None where it is left out."""
        assert self.candidate is not None
        problem = self.problem
        try:
            if self._lengths is None:
                _refuse_unsteady(unsteadiness(problem))
                self._lengths = ReductionLengths(problem)
            if inputs is None:
                inputs = draw_inputs(
                    problem,
                    workload.sizes,
                    workload.family,
                    seed=workload.seed,
                    scalars=workload.scalars,
                    is_shared=workload.layout == "shared",
                    reduction=self._lengths.longest(workload.sizes),
                )
            expected = expect(problem, workload, inputs, self._lengths)
            if is_doubtful(expected):
                _refuse_unsteady(unsteadiness(problem, expected))
            self.has_oracle = all(t.has_oracle for t in expected.targets) and self.has_oracle is not False
        except ReferenceProblem as error:
            if workload.family == "example":
                raise
            self.dropped.append(f"{workload.label()}: the reference refuses it ({short(error.what)})")
            return None
        try:
            prepared = prepare(self.candidate, inputs, limits, layout=workload.layout)
            slots = match_slots(self.candidate, prepared.plan, expected)
        except LLMKernelError as error:
            self._refuse(error, workload)
            return None
        if workload.is_long and self.device == "cpu" and threads_of(prepared.plan) > EMULATED_THREADS:
            self.dropped.append(f"{workload.label()}: too many threads for the cpu device")
            return None
        draw = Draw(workload, prepared.plan, expected, slots, self.source, misalign=prepared.misalign)
        draw.payloads = prepared.payloads
        mismatch = DRAW_CHECKS[0].inspect(draw)
        if mismatch is not None:
            if not _is_broadcast(workload, problem):
                _require_steady(mismatch, draw)
                raise Verdict(mismatch, DRAW_CHECKS[0].name)
            # Sizes that the example ties and a size of 0 or 1 separates: the reference broadcasts, another problem.
            self.dropped.append(f"{workload.label()}: the reference broadcasts there")
            return None
        return draw

    def _run(self, draw: Draw, *, repeats: int) -> None:
        assert self.session is not None
        assert self.limits is not None
        missing = [k for k in draw.plan.kernels() if k not in self.compiled["names"]]
        if missing:
            self.compile_kernels([*self.compiled["names"], *missing], self.limits)
        seed = new_seed()
        options = ExecutionOptions(timeout_seconds=self.timeout, seed=seed & 0x7FFFFFFF)
        try:
            result = self.session.draw(
                draw.plan, draw.payloads, repeats=repeats, seed=seed, options=options, misalign=draw.misalign
            )
            if result.fault is not None:
                result.fault = explained_fault(
                    result.fault, self.device, self.source, draw.plan, draw.payloads
                )
            draw.fill(result)
            is_short = size_of(draw) <= LARGE_ELEMENTS // 4 and not draw.workload.is_long
            if self.device == "cpu" and result.fault is None and is_short:
                for order in ("reverse", "random"):
                    other = replace(options, thread_order=order)
                    draw.orders[order] = self.session.draw(
                        draw.plan, draw.payloads, repeats=1, seed=seed, options=other, misalign=draw.misalign
                    )
        except LaunchError as error:
            raise Verdict(
                Finding(
                    "launch_failed",
                    f"{one_message(error)} At {draw.workload.label()}.",
                    {"line": error.line},
                ),
                "launch limits",
            ) from None
        draw.payloads = {}

    def inspect_draw(self, draw: Draw, limits: DeviceLimits) -> None:
        """Put a draw that has run through the checks; raises `Verdict` at the first that fails."""
        has_values = draw.result is not None and draw.result.fault is None
        for check in DRAW_CHECKS:
            if check.needs_values and not has_values:
                continue
            finding = check.inspect(draw)
            if finding is not None:
                draw.failed = True
                _require_steady(finding, draw)
                if finding.outcome == "wrong_value":
                    finding = self._precise(draw, finding, limits)
                raise Verdict(explained_race(self, draw, finding, limits), check.name)

    def _precise(self, draw: Draw, finding: Finding, limits: DeviceLimits) -> Finding:
        """Name low-precision arithmetic where a small error looks like rounding."""
        base = draw
        if draw.workload.family not in ("normal", "example") or draw.workload.layout != "contiguous":
            return finding
        assert self.candidate is not None
        assert self._lengths is not None
        near = [base]
        try:
            for _ in range(draws_needed(base)):
                inputs = moved_inputs(base.expected.inputs, new_seed())
                expected = expect(self.problem, base.workload, inputs, self._lengths)
                prepared = prepare(self.candidate, inputs, limits)
                other = Draw(
                    base.workload, prepared.plan, expected, [], self.source, payloads=prepared.payloads
                )
                other.slots = match_slots(self.candidate, prepared.plan, expected)
                self._run(other, repeats=2)
                near.append(other)
        except (LLMKernelError, Verdict):
            return finding
        error = is_downgraded(near)
        if error is None:
            return finding
        allowed = base.figures.get("allowed", 0.0)
        return Finding(
            "precision_downgraded",
            f"The arithmetic is less precise than the contract: row-scaled error {error:.2g} that looks like rounding, "
            f"allowed {allowed:.2g}, the library's own {base.figures.get('reference_error', 0.0):.2g}. Accumulate in "
            f"{base.slots[0].dtype} (no half precision, no TF32) at {base.workload.label()}.",
            finding.evidence,
        )


def _require_steady(finding: Finding, draw: Draw) -> None:
    """End with `inconclusive` where a candidate's mistake is that the reference contradicts itself."""
    if finding.outcome not in ("wrong_value", "wrong_shape", "non_finite"):
        return
    _refuse_unsteady(unsteadiness(draw.expected.problem, draw.expected))


def _refuse_unsteady(reason: str) -> None:
    if reason:
        raise Verdict(Finding("inconclusive", reason), "reference")


def quick_and_full(problem: Problem, level: str) -> tuple[list[Workload], list[Workload]]:
    """Return the workloads of the quick check, and those that a full verification adds."""
    quick = quick_workloads(problem)
    if level == "quick":
        return quick, []
    return quick, full_workloads(problem)[1:]


def size_of(draw: Draw) -> int:
    """Return the elements of all inputs and outputs."""
    sizes = [t.at_dtype.size for t in draw.expected.targets]
    sizes += [getattr(v, "size", 0) for v in draw.expected.inputs]
    return sum(sizes)


def threads_of(plan: LaunchPlan) -> int:
    """Return the threads of all launches."""
    return sum(math.prod(launch.grid) * math.prod(launch.block) for launch in plan.launches)


def _is_broadcast(workload: Workload, problem: Problem) -> bool:
    return not workload.is_users_own and any(
        n in (0, 1) and problem.sizes.get(s) not in (0, 1) for s, n in workload.sizes.items()
    )


def _types(candidate: Candidate, problem: Problem) -> dict[str, str]:
    types = {}
    for spec, mine in zip(candidate.header.signature.inputs, problem.signature.inputs, strict=False):
        types[spec.dtype] = mine.dtype
    names = {n for n, _ in candidate.header.signature.type_variables}
    return {k: v for k, v in types.items() if k in names}
