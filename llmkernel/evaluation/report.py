"""What was found of one candidate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

OUTCOMES = (
    "passed",
    "not_compiled",
    "not_written",
    "wrong_shape",
    "wrong_dtype",
    "wrong_value",
    "non_finite",
    "input_mutated",
    "out_of_bounds",
    "uninitialised_read",
    "data_race",
    "invalid_synchronization",
    "non_deterministic",
    "precision_downgraded",
    "launch_failed",
    "crashed",
    "timed_out",
    "out_of_memory",
    "rejected",
    "inconclusive",
    "unverified",
)

CheckStatus = Literal["passed", "failed", "warning", "not_applicable", "not_run"]


@dataclass(frozen=True)
class CheckResult:
    """What one check found.

    Attributes
    ----------
    name : str
        Short name with spaces, such as ``guard bands``.
    status : str
        ``passed``, ``failed``, ``warning``, ``not_applicable`` or ``not_run``.
    summary : str
        One sentence: what was covered, or why not.
    evidence : dict
        JSON-able: workload, indices, got, expected…
    """

    name: str
    status: CheckStatus
    summary: str
    evidence: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Measurement:
    """One row of the timing table.

    Attributes
    ----------
    label : str
        ``this kernel``, ``reference (eager)``, ``torch.compile (max-autotune)``…
    median_ms, p20_ms, p80_ms : float
    samples : int
    ratio : float or None
        This row's median over the kernel's: above 1 means that the kernel is faster. None for the kernel itself.
    ratio_low, ratio_high : float or None
        Bootstrap 95 % interval of the paired ratio.
    note : str
    """

    label: str
    median_ms: float
    p20_ms: float
    p80_ms: float
    samples: int
    ratio: float | None = None
    ratio_low: float | None = None
    ratio_high: float | None = None
    note: str = ""


@dataclass(frozen=True)
class Timing:
    """Timing of a candidate that passed.

    Attributes
    ----------
    is_emulation : bool
        Measured on the `cpu` device: never a speed-up.
    kernel : Measurement
    baselines : tuple of Measurement
        Slowest last is not promised; `best_baseline` names the fastest.
    best_baseline : str or None
    bytes_moved, operations : int or None
        What must move and be computed, for the speed of light.
    speed_of_light_ms : float or None
    fraction_of_speed_of_light : float or None
        speed_of_light_ms / kernel.median_ms; above 1.05 is suspect.
    is_suspect : bool
        Beyond the measured roofline: shown as such, never as a win.
    claim : str
        The one sentence that may be said, such as ``2.0 × the best baseline (95 % interval 1.97–2.03)``.
    workload : str
    device : dict
        Clocks, temperature, bandwidth, versions.
    """

    is_emulation: bool
    kernel: Measurement
    baselines: tuple[Measurement, ...] = ()
    best_baseline: str | None = None
    bytes_moved: int | None = None
    operations: int | None = None
    speed_of_light_ms: float | None = None
    fraction_of_speed_of_light: float | None = None
    is_suspect: bool = False
    claim: str = ""
    workload: str = ""
    device: dict[str, Any] = field(default_factory=dict)


# Set from above: what a report looks like is no matter of this layer.
_forms: Callable[[Report], dict[str, Any]] | None = None


def show_reports_by(forms: Callable[[Report], dict[str, Any]]) -> None:
    """Have reports shown by a function from a report to its MIME bundle."""
    global _forms
    _forms = forms


@dataclass(frozen=True, repr=False)
class Report:
    """Everything found of one candidate, and what was not looked at.

    Attributes
    ----------
    outcome : str
        One of `OUTCOMES`; ``unverified`` is the best that a candidate without a reference comes to.
    headline : str
        One sentence: the verdict and its reason.
    name : str
        Name of the callable.
    signature : str
    device : dict
        `DeviceLimits.to_dict` and versions.
    level : str
        ``quick``, ``full``, or ``memory``: the checks that need no reference.
    is_verified : bool
        False for a candidate that was run without a reference: it has never ``passed``.
    checks : tuple of CheckResult
    workloads : tuple of dict
        One dict a draw: ``sizes``, ``family``, ``is_users_own``, ``error`` (in units of the tolerance's scale),
        ``allowed``, ``reference_error``, ``outcome``.
    tolerance : dict
        ``policy``, ``reason``, figures.
    compile : dict
        ``seconds``, ``options``, ``diagnostics``, ``kernels`` (resources by name expression), ``arch``.
    fault : dict
        `Fault` as data; empty when there was none.
    feedback : str
        What a provider is told: trimmed compiler errors, the failing workload, or the profile.
    not_checked : tuple of str
        The negative space, one sentence each.
    warnings : tuple of str
    timing : Timing or None
        Only beside ``passed``.
    seconds : dict
        Wall seconds by stage: ``compile``, ``quick``, ``full``, ``timing``, ``total``.
    """

    outcome: str
    headline: str
    name: str = ""
    signature: str = ""
    device: dict[str, Any] = field(default_factory=dict)
    level: str = "quick"
    is_verified: bool = True
    checks: tuple[CheckResult, ...] = ()
    workloads: tuple[dict[str, Any], ...] = ()
    tolerance: dict[str, Any] = field(default_factory=dict)
    compile: dict[str, Any] = field(default_factory=dict)
    fault: dict[str, Any] = field(default_factory=dict)
    feedback: str = ""
    not_checked: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    timing: Timing | None = None
    seconds: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.outcome not in OUTCOMES:
            raise ValueError(f"outcome is one of {', '.join(OUTCOMES)}; received {self.outcome!r}")
        if self.outcome == ("unverified" if self.is_verified else "passed"):
            pair = f"{self.outcome!r}, is_verified={self.is_verified}"
            raise ValueError(f"'passed' needs a reference, 'unverified' has none; received {pair}")
        if self.timing is not None and self.outcome != "passed":
            raise ValueError(f"timing stands only beside 'passed'; received {self.outcome!r}")

    def __repr__(self) -> str:
        return f"<Report {self.outcome}: {self.name}. {self.headline}>"

    def __str__(self) -> str:
        """Return the whole report as text of 80 columns."""
        return repr(self) if _forms is None else str(_forms(self)["text/plain"])

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any] | None:
        """Return the report as a notebook shows it."""
        return None if _forms is None else _forms(self)

    @property
    def is_passed(self) -> bool:
        """Whether the candidate may be accepted."""
        return self.outcome == "passed"

    def to_dict(self) -> dict[str, Any]:
        """Return JSON data: only dicts, lists, strings, numbers, booleans and null."""
        data = _plain(asdict(self))
        assert isinstance(data, dict)
        return data

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Report:
        """Rebuild from `to_dict`; ValueError or TypeError when the data is not a report's."""
        timing = data.get("timing")
        return cls(
            **{
                **data,
                "checks": tuple(CheckResult(**c) for c in data.get("checks", ())),
                "workloads": tuple(data.get("workloads", ())),
                "not_checked": tuple(data.get("not_checked", ())),
                "warnings": tuple(data.get("warnings", ())),
                "timing": None if timing is None else _timing(timing),
            }
        )


def _timing(data: dict[str, Any]) -> Timing:
    return Timing(
        **{
            **data,
            "kernel": Measurement(**data["kernel"]),
            "baselines": tuple(Measurement(**b) for b in data["baselines"]),
        }
    )


def _plain(value: Any) -> Any:
    """Replace NumPy scalars, tuples and non-finite floats by what JSON has."""
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if isinstance(value, bool | int | str) or value is None:
        return value
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else str(value)
    if hasattr(value, "item"):
        return _plain(value.item())
    return str(value)
