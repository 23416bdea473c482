"""Every error that a user of the package can meet.

The tree::

    LLMKernelError
    ├── UsageError               a magic, option or argument that cannot be understood
    ├── ConfigurationError       a configuration file or value
    ├── ReferenceProblem         the reference or its inputs cannot define a problem
    ├── CandidateError
    │   ├── ReplyError           no usable source in a reply
    │   ├── HeaderError          the launch header; carries line and column
    │   ├── RejectedError        a static rule; carries rule and line
    │   └── BindingError         arguments that the header or a verified kernel does not take
    │       └── PreconditionError    a `require` of the header
    ├── DeviceError
    │   ├── DeviceUnavailableError   no GPU, no compiler, no driver
    │   ├── CompileError         carries diagnostics
    │   ├── UnsupportedFeatureError  the device cannot run this construct; carries line
    │   ├── LaunchError          a limit or launch failure; carries the header's line
    │   └── WorkerError          the evaluation worker died or does not answer
    ├── ProviderError            see llmkernel.providers.errors for its subclasses
    ├── NotAcceptedError         synthesis ended without an accepted candidate; carries the attempts
    └── RecordError              a record cannot be read, written or trusted

Each says what happened, the rule, the value received and the next step, in that order.
"""

from __future__ import annotations

from typing import Any

# Columns of a notebook's output on a small screen.
_WIDTH = 96


def type_text(value: Any) -> str:
    """Return the name of a value's type as people write it: ``list``, ``pandas.core.frame.DataFrame``."""
    kind = type(value)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


class LLMKernelError(Exception):
    """Base of every error of this package.

    Parameters
    ----------
    what : str
        What happened, one sentence.
    rule : str, optional
        The rule that was broken.
    received : str, optional
        The value that was received, already formatted.
    next_step : str, optional
        What the user can do now.
    """

    def __init__(
        self, what: str, *, rule: str | None = None, received: str | None = None, next_step: str | None = None
    ) -> None:
        super().__init__(what)
        self.what = what
        self.rule = rule
        self.received = received
        self.next_step = next_step

    def __str__(self) -> str:
        """Return the readable message: what, rule, received, next step, a line each; without secrets."""
        lines = [self.what]
        if self.rule:
            lines.append(f"  rule: {self.rule}")
        if self.received:
            lines.append(f"  received: {self.received}")
        if self.next_step:
            lines.append(f"  next: {self.next_step}")
        # Not at the top: a kernel that starts needs the errors and no redactor.
        from llmkernel.prompts.redaction import redact

        return redact("\n".join(lines))

    def _render_traceback_(self) -> list[str]:
        """Show one readable message in IPython in place of a stack of library frames."""
        return [_fitted(f"{type(self).__name__}: {self}")]

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle through the state: subclasses take extra keyword arguments."""
        return (_rebuild, (type(self), self.what, self.__dict__.copy()))


def _fitted(message: str) -> str:
    """Return a message whose lines end between words: notebooks break a long line of an error anywhere."""
    import shutil
    import sys
    import textwrap

    width = _WIDTH
    if sys.stdout is not None and sys.stdout.isatty():
        width = min(width, max(shutil.get_terminal_size().columns, 40))
    lines = []
    for line in message.split("\n"):
        words = line.lstrip()
        indent = line[: len(line) - len(words)]
        fitted = textwrap.wrap(
            words,
            width,
            initial_indent=indent,
            subsequent_indent=f"{indent}  ",
            break_long_words=False,
            break_on_hyphens=False,
        )
        lines += fitted if len(line) > width else [line]
    return "\n".join(lines)


def _rebuild(cls: type[LLMKernelError], what: str, state: dict[str, Any]) -> LLMKernelError:
    error = cls.__new__(cls)
    Exception.__init__(error, what)
    error.__dict__.update(state)
    return error


class UsageError(LLMKernelError):
    """A magic line, option or argument that cannot be understood."""


class ConfigurationError(LLMKernelError):
    """A configuration file or value that cannot be used."""


class ReferenceProblem(LLMKernelError):  # noqa: N818 - "ReferenceError" is a builtin
    """The reference or its inputs cannot define a problem."""


class CandidateError(LLMKernelError):
    """Base of everything that is wrong with a reply or a `.cu` file."""


class ReplyError(CandidateError):
    """A reply holds no usable source."""


class HeaderError(CandidateError):
    """The launch header cannot be parsed or does not fit the kernels below it.

    Attributes
    ----------
    line, column : int
        1-based place in the `.cu` file; column 0 when only the line is known.
    """

    def __init__(
        self,
        what: str,
        *,
        line: int = 0,
        column: int = 0,
        **explanation: str | None,
    ) -> None:
        super().__init__(what, **explanation)
        self.line = line
        self.column = column


class RejectedError(CandidateError):
    """A static rule refuses the source.

    Attributes
    ----------
    rule_name : str
        Short name of the rule, such as ``host-code``.
    line : int
        1-based line in the `.cu` file.
    """

    def __init__(
        self,
        what: str,
        *,
        rule_name: str,
        line: int = 0,
        **explanation: str | None,
    ) -> None:
        super().__init__(what, **explanation)
        self.rule_name = rule_name
        self.line = line


class BindingError(CandidateError):
    """Arguments that the header, or the verified kernel, does not take.

    Attributes
    ----------
    argument : str or None
        Name of the offending argument.
    reason : str
        One of ``count``, ``dtype``, ``rank``, ``shape``, ``layout``, ``device``, ``grad``, ``value``.
    """

    def __init__(
        self,
        what: str,
        *,
        argument: str | None = None,
        reason: str = "value",
        **explanation: str | None,
    ) -> None:
        super().__init__(what, **explanation)
        self.argument = argument
        self.reason = reason


class PreconditionError(BindingError):
    """A `require` of the launch header does not hold for these arguments."""


class DeviceError(LLMKernelError):
    """Base of everything that goes wrong on a device."""


class DeviceUnavailableError(DeviceError):
    """There is no such device here, or a part of its tool chain is missing."""


class CompileError(DeviceError):
    """The compiler refused the source.

    Attributes
    ----------
    diagnostics : tuple of llmkernel.devices.base.Diagnostic
        In the compiler's order.
    log : str
        The whole log, without terminal colours.
    """

    def __init__(
        self,
        what: str,
        *,
        diagnostics: tuple[Any, ...] = (),
        log: str = "",
        **explanation: str | None,
    ) -> None:
        super().__init__(what, **explanation)
        self.diagnostics = diagnostics
        self.log = log


class UnsupportedFeatureError(DeviceError):
    """The source uses a construct that this device cannot run.

    Attributes
    ----------
    feature : str
        Name of the construct.
    line : int
        1-based line in the `.cu` file.
    """

    def __init__(
        self,
        what: str,
        *,
        feature: str,
        line: int = 0,
        **explanation: str | None,
    ) -> None:
        super().__init__(what, **explanation)
        self.feature = feature
        self.line = line


class LaunchError(DeviceError):
    """A launch that the device's limits do not allow, or that the driver refused.

    Attributes
    ----------
    line : int
        1-based line of the launch in the header.
    """

    def __init__(
        self,
        what: str,
        *,
        line: int = 0,
        **explanation: str | None,
    ) -> None:
        super().__init__(what, **explanation)
        self.line = line


class WorkerError(DeviceError):
    """The evaluation worker died, or does not answer."""


class ProviderError(LLMKernelError):
    """Base of every failure of a provider; see `llmkernel.providers.errors`."""


class NotAcceptedError(LLMKernelError):
    """Synthesis ended without an accepted candidate.

    Attributes
    ----------
    attempts : tuple of llmkernel.synthesis.events.Attempt
        All attempts, the last one last.
    """

    def __init__(
        self,
        what: str,
        *,
        attempts: tuple[Any, ...] = (),
        **explanation: str | None,
    ) -> None:
        super().__init__(what, **explanation)
        self.attempts = attempts


class RecordError(LLMKernelError):
    """A record cannot be read, written or trusted."""
