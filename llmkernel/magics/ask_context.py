"""What is sent along with a question: variables, the last error, cells, a kernel; nothing that was not asked for."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from llmkernel.errors import LLMKernelError, UsageError
from llmkernel.magics.ask_options import AskOptions
from llmkernel.magics.kernel_names import record_store
from llmkernel.magics.namespace import is_array, is_reference, user_names
from llmkernel.magics.parsing import suggestion
from llmkernel.magics.session import RunCell, Session, get_session
from llmkernel.prompts.ask import Section, kernel_section

if TYPE_CHECKING:
    from llmkernel.synthesis.generated_kernel import GeneratedKernel

_MAX_REPORT = 12_000
_WORDS = ("a", "A", "I")
_NAME = re.compile(r"[A-Za-z_]\w*")


@dataclass
class AskContext:
    """The context of one question.

    Attributes
    ----------
    sections : list of Section
    failed : RunCell or None
        The cell whose error is sent.
    kernel : GeneratedKernel or None
        The kernel of ``--kernel`` where it is alive in the notebook.
    """

    sections: list[Section] = field(default_factory=list)
    failed: RunCell | None = None
    kernel: GeneratedKernel | None = None


def gather(ipython: Any, options: AskOptions) -> AskContext:
    """Collect what `options` name.

    Raises
    ------
    llmkernel.errors.UsageError
        When a name, an error or a cell that the line asks for is not there.
    """
    session, context = get_session(ipython), AskContext()
    # A question about a kernel is about that kernel, whatever failed before it.
    wants_error = options.error or (options.error is None and session.is_last_failed and not options.kernel)
    if wants_error:
        context.failed = session.failed
        if context.failed is None:
            raise UsageError(
                "There is no error to send.",
                rule="--error sends the last exception of this session.",
                next_step="Leave --error out.",
            )
    context.sections += _cells(session, options.cells, context.failed)
    if context.failed is not None:
        context.sections.append(_error(ipython, context.failed))
    if options.kernel:
        context.kernel, section = _kernel(ipython, options.kernel)
        context.sections.append(section)
    context.sections += [_variable(ipython, name) for name in options.context]
    return context


def unsent_names(ipython: Any, options: AskOptions) -> list[str]:
    """Return arrays and functions of the notebook that the question names and that are not sent."""
    known = set(user_names(ipython.user_ns, lambda value: is_array(value) or is_reference(value)))
    known -= {name.partition(".")[0] for name in (*options.context, options.kernel or "")}
    # In a sentence these are words, whatever the notebook calls so; in backticks they are names.
    known -= {word for word in _WORDS if f"`{word}`" not in options.question}
    return [name for name in dict.fromkeys(_NAME.findall(options.question)) if name in known][:4]


def _cells(session: Session, count: int, failed: RunCell | None) -> list[Section]:
    from llmkernel.prompts.notebook_context import describe_cell

    chosen = [cell for cell in list(session.cells)[-count:] if cell is not failed] if count else []
    return [Section(cell.label, describe_cell(cell.label, cell.text)) for cell in chosen]


def _error(ipython: Any, failed: RunCell) -> Section:
    from llmkernel.prompts.notebook_context import describe_cell, describe_error, safe
    from llmkernel.prompts.text import fenced

    def name_of(filename: str) -> str:
        named = getattr(ipython.compile, "format_code_name", lambda _: None)(filename)
        return " ".join(map(str, named)) if named else filename

    error = failed.error
    assert error is not None
    parts = [describe_cell(failed.label, failed.text)]
    if isinstance(error, LLMKernelError):
        # Its message says it all; the frames are this package's own.
        parts.append("It ended with:\n" + fenced(safe(f"{type(error).__name__}: {error}", _MAX_REPORT)))
        parts += _attempt(error)
    else:
        parts.append("It ended with:\n" + describe_error(error, name_of))
    return Section(f"the error of {failed.label}", "\n\n".join(parts))


def _attempt(error: LLMKernelError) -> list[str]:
    attempts = getattr(error, "attempts", ())
    if not attempts:
        return []
    from llmkernel.prompts.text import fenced

    last = attempts[-1]
    parts = [f"The last candidate:\n{fenced(last.source, 'cuda')}"] if last.source else []
    return [*parts, *([f"Its report:\n{fenced(_report(last.report))}"] if last.report is not None else [])]


def _report(report: Any) -> str:
    from llmkernel.display.text import format_report
    from llmkernel.prompts.text import cut

    return cut(format_report(report, 100), _MAX_REPORT)


def _kernel(ipython: Any, name: str) -> tuple[GeneratedKernel | None, Section]:
    """Find a kernel: alive in the notebook, else among the records beside it."""
    from llmkernel.synthesis.generated_kernel import GeneratedKernel

    value = ipython.user_ns.get(name)
    if isinstance(value, GeneratedKernel):
        reference = value.problem.reference.source
        return value, kernel_section(name, value.signature, value.source, reference, _report(value.report))
    stored = record_store(ipython).load(name) if name.isidentifier() else None
    if stored is None:
        found = user_names(ipython.user_ns, lambda v: isinstance(v, GeneratedKernel))
        found += [s.record.name for s in record_store(ipython).list()]
        raise UsageError(
            f"There is no generated kernel called {name}.",
            received=type(value).__name__ if name in ipython.user_ns else None,
            next_step=f"{suggestion(name, found)}%kernels lists what is kept beside the notebook.",
        )
    record = stored.record
    report = _report(record.read_report()) if record.report else "There is none."
    return None, kernel_section(
        name, record.problem.signature, stored.source, record.problem.reference, report
    )


def _variable(ipython: Any, name: str) -> Section:
    from llmkernel.prompts.notebook_context import describe_value, lookup

    first = name.partition(".")[0]
    if first not in ipython.user_ns:
        raise UsageError(
            f"There is no variable called {first}.",
            next_step=f"{suggestion(first, user_names(ipython.user_ns, lambda _: True))}Run the cell that defines it.",
        )
    try:
        value = lookup(ipython.user_ns, name)
    except Exception as error:  # noqa: BLE001 - a property of the user's own may raise anything
        raise UsageError(
            f"{name} cannot be read.",
            received=type(error).__name__,
            next_step=f"dir({first}) lists its names.",
        ) from None
    return Section(name, describe_value(name, value))
