"""What every judging begins with: static rules, a worker, the compiler; and the list of what was found."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from llmkernel.candidate.candidate import Candidate, parse_candidate
from llmkernel.candidate.rules import check_rules
from llmkernel.devices.base import DeviceLimits
from llmkernel.errors import CandidateError, CompileError, UnsupportedFeatureError
from llmkernel.evaluation.draw import Finding
from llmkernel.evaluation.judge_text import first_error, first_errors, one_message
from llmkernel.evaluation.report import CheckResult
from llmkernel.evaluation.session import Compiled, Session
from llmkernel.evaluation.worker.client import WorkerLostError

Listener = Callable[[CheckResult], None]


class Verdict(Exception):  # noqa: N818 - it ends the judging, it is not an error
    """Ends the judging with an outcome."""

    def __init__(self, finding: Finding, check: str = "") -> None:
        super().__init__(finding.summary)
        self.finding = finding
        self.check = check


class Trial:
    """One candidate on one device, up to its compilation.

    Parameters
    ----------
    source : str
    device : str
        ``cuda`` or ``cpu``.
    timeout : float
        Seconds that one execution may take.
    arch : str or None
        Architecture to compile for.
    on_check : callable, optional
        Called with every finished check.
    """

    def __init__(
        self,
        source: str,
        device: str,
        *,
        timeout: float = 20.0,
        arch: str | None = None,
        on_check: Listener | None = None,
    ) -> None:
        self.source = source
        self.device = device
        self.timeout = timeout
        self.arch = arch
        self.on_check = on_check
        self.seconds: dict[str, float] = {}
        self.compiled: dict[str, Any] = {}
        self.checks: dict[str, CheckResult] = {}
        self.warnings: list[str] = []
        self.candidate: Candidate | None = None
        self.session: Session | None = None
        self.limits: DeviceLimits | None = None

    def parse(self) -> Candidate:
        """Apply the static rules and read header and parameter lists."""
        try:
            check_rules(self.source)
            self.candidate = parse_candidate(self.source)
        except CandidateError as error:
            line = getattr(error, "line", 0)
            evidence = {
                "line": line,
                "column": getattr(error, "column", 0),
                "rule": getattr(error, "rule_name", ""),
            }
            where = f"line {line}: " if line else ""
            raise Verdict(Finding("rejected", where + one_message(error), evidence), "static rules") from None
        self.done(
            "static rules", "device code only, and the launch header agrees with the kernels' parameters"
        )
        return self.candidate

    def open(self) -> DeviceLimits:
        """Take a worker."""
        self.session = Session(self.device, self.timeout)
        self.limits = self.session.limits()
        return self.limits

    def compile_kernels(
        self, kernels: list[str], limits: DeviceLimits, ask: Callable[[], Compiled] | None = None
    ) -> None:
        """Compile `kernels`, here or by `ask`; raises `Verdict` where the compiler refuses one."""
        assert self.session is not None
        started = time.perf_counter()
        try:
            answer = (ask() if ask else self.session.compile(self.source, kernels, self.arch)).data
        except CompileError as error:
            self.compiled = {"diagnostics": [vars(d) for d in error.diagnostics], "log": error.log[:20000]}
            raise Verdict(Finding("not_compiled", first_errors(error), self.compiled), "compile") from None
        except UnsupportedFeatureError as error:
            evidence = {"feature": error.feature, "line": error.line}
            raise Verdict(Finding("inconclusive", one_message(error), evidence), "compile") from None
        except WorkerLostError as lost:
            what = f"The compiler did not end well: {lost.fault.message}"
            outcome = "inconclusive" if lost.is_interference else "not_compiled"
            raise Verdict(Finding(outcome, what), "compile") from None
        checked = answer.get("nvrtc")
        if checked is not None and not checked["is_compiled"]:
            self.compiled = {
                "diagnostics": checked["diagnostics"],
                "log": checked["log"],
                "arch": checked["arch"],
            }
            what = f"NVRTC ({checked['arch']}): {first_error(checked['diagnostics'])}"
            raise Verdict(Finding("not_compiled", what, self.compiled), "compile")
        self.seconds["compile"] = answer["seconds"]
        self.compiled = {
            "seconds": answer["seconds"],
            "is_cached": answer["is_cached"],
            "wall_seconds": time.perf_counter() - started,
            "options": answer["options"],
            "diagnostics": answer["warnings"],
            "kernels": checked["resources"] if checked is not None else answer["resources"],
            "names": kernels,
            "arch": f"the host, and checked by NVRTC for {checked['arch']}"
            if checked
            else self.arch or limits.arch,
        }

    def done(self, name: str, summary: str) -> None:
        """Keep a check that passed."""
        self.add(CheckResult(name, "passed", summary))

    def add(self, result: CheckResult) -> None:
        """Keep a check's result and tell the listener."""
        self.checks[result.name] = result
        if self.on_check is not None:
            self.on_check(result)
