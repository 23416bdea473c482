"""``%ask`` and ``%%ask``: questions about the notebook, with a context that one sees and chooses."""

from __future__ import annotations

import contextlib
from functools import cached_property
from typing import TYPE_CHECKING, Any

from IPython.core.magic import Magics, line_cell_magic, magics_class, no_var_expand

from llmkernel.config import LLMKernel, get_config
from llmkernel.errors import NotAcceptedError, ProviderError, ReplyError, UsageError
from llmkernel.magics.declaring import declare
from llmkernel.magics.secrets import refuse_secrets
from llmkernel.magics.session import RunCell, get_session

if TYPE_CHECKING:
    from llmkernel.display.answer import AnswerOutput
    from llmkernel.magics.ask_context import AskContext
    from llmkernel.magics.ask_options import AskOptions
    from llmkernel.prompts.ask import Conversation
    from llmkernel.providers.base import Provider, Reply, Request

# IPython puts a `%` in front, and argparse makes one of two.
_USAGE = "ask [options] QUESTION\n    or %%%%ask [options], and below it the question"
_WHY = "Why did this fail, and what should I change?"
_FIX = "Correct this cell."


@magics_class
class AskMagics(Magics):  # type: ignore[misc]
    """Holds ``%ask`` and ``%%ask``."""

    def __init__(self, shell: Any = None, **options: Any) -> None:
        super().__init__(shell, **options)
        self._sent: tuple[str, Request] | None = None

    @cached_property
    def conversation(self) -> Conversation:
        """The questions and answers of this session."""
        from llmkernel.prompts.ask import Conversation

        return Conversation()

    @declare("ask", _USAGE, "llmkernel.magics.ask_options:ASK_ARGUMENTS")
    @no_var_expand  # type: ignore[untyped-decorator]
    @line_cell_magic  # type: ignore[untyped-decorator]
    def ask(self, line: str, cell: str | None = None) -> None:
        """Ask about the notebook; the answer streams in below.

        Sent are the question, what the options name, the error of the cell before where it failed, and the
        earlier questions of this session. Nothing else is, and nothing of the answer is run.

            %ask --context x,softmax why is x nan?
            %ask --fix
            %%ask --kernel softmax_cuda --fix
            Rows are longer than 8192 now: let a block take one row.
        """
        config = get_config(self.shell)
        from llmkernel.magics.ask_options import parse_ask

        options = parse_ask(self.ask, line, cell)
        if options.reset:
            self.conversation.reset()
            self._sent = None
        if options.sent:
            self._show_sent()
            return
        refuse_secrets(line if cell is None else f"{line}\n{cell}")
        if options.reset and not options.question and not (options.fix or options.error or options.kernel):
            print("The conversation begins anew.")  # noqa: T201 - the cell's output
            return
        from llmkernel.magics.ask_context import gather
        from llmkernel.providers.registry import get_provider

        context = gather(self.shell, options)
        cell_to_fix = self._cell_to_fix(options, context)
        question = _question(options, context)
        provider = get_provider(options.provider, model=options.model, config=config)
        request, sent = self._build(options, context, question, config)
        if options.show_context:
            _show(request, _size(provider, request))
            return
        _refuse_offline(provider)
        self._answer(options, context, question, cell_to_fix, provider, request, sent, config)

    def _answer(
        self,
        options: AskOptions,
        context: AskContext,
        question: str,
        cell_to_fix: RunCell | None,
        provider: Provider,
        request: Request,
        sent: str,
        config: LLMKernel,
    ) -> None:
        from llmkernel.display.answer import AnswerOutput
        from llmkernel.magics.ask_context import unsent_names

        asked = provider.describe(request)
        self._sent = (asked, request)
        with AnswerOutput(asked, sent, quiet=config.quiet) as output:
            missing = unsent_names(self.shell, options)
            reply = _stream(provider, request, output, config)
            if missing:
                output.note(f"Not sent, though the question may mean it: `--context {','.join(missing)}`.")
            if cell_to_fix is not None:
                self._offer_fix(reply, cell_to_fix, output)
            elif options.code:
                self._offer_code(reply, output)
        if options.kernel and options.fix:
            self._offer_kernel(context.kernel, question, reply, asked, config)
        elif reply.stop_reason == "end" and reply.text.strip():
            self.conversation.add(request.messages[-1].text, reply.text)

    def _build(
        self, options: AskOptions, context: AskContext, question: str, config: LLMKernel
    ) -> tuple[Request, str]:
        """Return the request, and in a few words what is in it."""
        labels = ["the question", *(section.label for section in context.sections)]
        if options.kernel and options.fix:
            from llmkernel.magics.ask_kernel import change_request

            kernel = context.kernel
            if kernel is None:
                raise UsageError(
                    f"{options.kernel} is not in the notebook.",
                    rule="A changed kernel is judged against its reference, which only a kernel in the notebook has.",
                    next_step="Run the cell that makes it, then ask again.",
                )
            others = [s for s in context.sections if s.label != f"kernel {options.kernel}"]
            return change_request(kernel, question, others, options), ", ".join(labels)
        turns, dropped = self.conversation.within(config.conversation_tokens)
        if turns or dropped:
            plural = "s" if len(turns) != 1 else ""
            gone = f" ({dropped} dropped)" if dropped else ""
            labels.append(f"{len(turns)} earlier question{plural}{gone}")
        from llmkernel.prompts.ask import build_ask_request

        request = build_ask_request(
            question,
            context.sections,
            turns,
            wants="fix" if options.fix else "code" if options.code else "",
            model=options.model,
            effort=options.effort,
            max_tokens=options.max_tokens,
        )
        return request, ", ".join(labels)

    def _cell_to_fix(self, options: AskOptions, context: AskContext) -> RunCell | None:
        """Return the cell that ``--fix`` is about, and see to it that it is sent."""
        if not options.fix or options.kernel:
            return None
        cells = get_session(self.shell).cells
        cell = context.failed or (cells[-1] if cells else None)
        if cell is None:
            raise UsageError(
                "There is no cell to correct.",
                rule="--fix corrects the cell that failed, else the one before this one.",
                next_step="Run the cell first, then ask again.",
            )
        from llmkernel.prompts.ask import Section
        from llmkernel.prompts.notebook_context import describe_cell, why_not_sent

        refusal = why_not_sent(cell.text)
        if refusal:
            raise UsageError(
                f"{cell.label} is not sent: {refusal}.",
                rule="A cell that holds a key is never sent, so it cannot be corrected either.",
                next_step="Take the key out of it, run it again, then ask again.",
            )
        if cell.label not in [s.label for s in context.sections] and cell is not context.failed:
            context.sections.insert(0, Section(cell.label, describe_cell(cell.label, cell.text)))
        return cell

    def _offer_fix(self, reply: Reply, cell: RunCell, output: AnswerOutput) -> None:
        from llmkernel.display.diff import diff_text
        from llmkernel.display.markdown import code_block
        from llmkernel.magics.ask_cells import corrected_cell

        if reply.stop_reason != "end":
            return
        corrected = corrected_cell(reply.text)
        changes = "" if corrected is None else diff_text(cell.text.rstrip("\n"), corrected)
        if corrected is None:
            output.note("**The answer holds no corrected cell**; nothing was put below.")
        elif not changes:
            output.note(f"**The corrected cell is {cell.label} as it was**; nothing was put below.")
        else:
            output.note(f"**What changes in {cell.label}** (the cell below; it was not run)")
            output.note(code_block(changes, "diff"))
            self.shell.set_next_input(corrected)

    def _offer_code(self, reply: Reply, output: AnswerOutput) -> None:
        from llmkernel.magics.ask_cells import answer_code

        if reply.stop_reason != "end":
            return
        code = answer_code(reply.text)
        if code is None:
            output.note("**The answer holds no Python**; nothing was put below.")
        else:
            output.note("*The code is in the cell below; it was not run.*")
            self.shell.set_next_input(code)

    def _offer_kernel(self, kernel: Any, question: str, reply: Reply, asked: str, config: LLMKernel) -> None:
        from llmkernel.display.answer import publish_note
        from llmkernel.display.diff import diff_text
        from llmkernel.display.markdown import code_block
        from llmkernel.magics.ask_kernel import judge_change, verdict_text
        from llmkernel.magics.kernel_cell import kernel_cell
        from llmkernel.providers.errors import failure_of_reply

        cut_off = failure_of_reply(reply)
        if cut_off is not None:
            raise cut_off
        name = kernel.problem.name
        about = f"About the kernel {name}, to be changed: {question}"
        try:
            source, report = judge_change(kernel, reply, asked, quiet=config.quiet, live=config.live)
        except ReplyError as error:
            # An answer may say that there is nothing to change.
            self.conversation.add(about, reply.text)
            publish_note(f"**No changed kernel to judge**: {error.what} {name} is as it was.")
            return
        except NotAcceptedError as error:
            self.conversation.add(about, f"{reply.text}\n\n{verdict_text(error)}")
            raise
        self.conversation.add(about, f"{reply.text}\n\n{verdict_text(report)}")
        changes = diff_text(kernel.source, source)
        if not changes:
            publish_note("The kernel came back unchanged; nothing was put below.")
            return
        publish_note(
            f"**What changes in {name}** (the cell below takes it over; {name} is as it was until then)\n\n"
            + code_block(changes, "diff")
        )
        self.shell.set_next_input(kernel_cell(self.shell, kernel, source))

    def _show_sent(self) -> None:
        if self._sent is None:
            print("Nothing was sent in this session.")  # noqa: T201
            return
        asked, request = self._sent
        _show(request, f"sent to {asked}")


def _question(options: AskOptions, context: AskContext) -> str:
    if options.question:
        return options.question
    if options.fix and not options.kernel:
        return _FIX if context.failed is None else f"{_WHY} {_FIX}"
    if context.failed is not None:
        return _WHY
    raise UsageError(
        "usage: %ask [options] QUESTION, or %%ask [options] and below it the question",
        next_step="%ask? explains the options.",
    )


def _stream(provider: Provider, request: Request, output: AnswerOutput, config: LLMKernel) -> Reply:
    """Stream the answer into `output`; the connection ends with this call, however it ends."""
    from llmkernel.providers.base import Reply
    from llmkernel.providers.errors import failure_of_reply
    from llmkernel.providers.usage import stream_counted

    reply: Reply | None = None
    counted = stream_counted(provider, request, purpose="%ask", budget_usd=config.notebook_budget_usd)
    with contextlib.closing(counted) as events:  # type: ignore[type-var]
        for event in events:
            output(event)
            reply = event if isinstance(event, Reply) else reply
    if reply is None:
        raise ProviderError(
            f"{provider.name} ended its stream without a reply.",
            rule="the last event of a stream is the reply",
            next_step="Ask again; if it happens again, the provider plug-in is at fault.",
        )
    if reply.stop_reason == "refusal":
        refused = failure_of_reply(reply, provider=provider.name)
        assert refused is not None
        raise refused
    return reply


def _refuse_offline(provider: Provider) -> None:
    if provider.is_offline:
        from llmkernel.providers.errors import MissingKeyError

        raise MissingKeyError(
            f"Asking needs a provider that answers in words; `{provider.name}` is offline and holds kernels only.",
            rule="%ask is answered by a language model. Nothing was sent.",
            next_step="Set ANTHROPIC_API_KEY or OPENAI_API_KEY before Jupyter starts, or name --provider "
            "openai-compatible with a server of your own. %ask --show-context shows what would be sent.",
        )


def _size(provider: Provider, request: Request) -> str:
    from llmkernel.prompts.build import count_tokens

    if provider.is_offline:
        return f"about {count_tokens(request):,} tokens; not sent, and no provider is configured"
    return f"{provider.describe(request)}: about {provider.count_tokens(request):,} tokens, not sent"


def _show(request: Request, title: str) -> None:
    print(title)  # noqa: T201
    for role, text in (("system", request.system), *((m.role, m.text) for m in request.messages)):
        print(f"── {role}, {len(text):,} characters " + "─" * 40)  # noqa: T201
        print(text)  # noqa: T201
