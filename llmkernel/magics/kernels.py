"""``%kernels``: the kernels beside the notebook; what they are, how they changed, and what is done with them."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from IPython.core.magic import Magics, line_magic, magics_class, no_var_expand
from IPython.core.magic_arguments import argument, argument_group

from llmkernel.errors import RecordError, UsageError
from llmkernel.magics.declaring import declare
from llmkernel.magics.kernel_names import find_version, label_of, record_store, split_name, versions_of
from llmkernel.magics.notebook import notebook_directory
from llmkernel.magics.parsing import parse_line, shown

if TYPE_CHECKING:
    from llmkernel.records.store import StoredRecord

# Each with what it takes besides NAME.
ACTIONS = {
    "list": "",
    "show": "",
    "history": "",
    "diff": "NAME",
    "rollback": "N",
    "edit": "",
    "explain": "",
    "profile": "",
    "compare": "NAME",
    "export": "",
}
_OPTIONAL_SECOND = ("diff",)
_EXPLAIN = (
    "Explain this kernel to the person who will use it: how the work is divided over blocks and threads, how memory is "
    "read and written, why it is right at the edges, what limits its speed according to the report, and the one change "
    "that you would try next."
)

KERNELS_ARGUMENTS = (
    argument(
        "action",
        nargs="?",
        choices=tuple(ACTIONS),
        default="list",
        help="""list: all kernels, or NAME; show: report and source; history: the versions of NAME; diff: what
        differs between two kernels, or between NAME and the version before it; rollback: put version N back;
        edit: open a cell below with the source; explain: ask the provider; profile: what limits it;
        compare: time two kernels in turn on the same inputs; export: write the .cu file elsewhere.""",
    ),
    argument(
        "record", metavar="NAME", nargs="?", help="Name of a kernel; NAME@N is the N-th version before it."
    ),
    argument(
        "other", metavar="OTHER", nargs="?", help="The second kernel of diff and compare; N of rollback."
    ),
    argument_group("where it goes"),
    argument("--to", metavar="FILE", help="Where `export` writes; default: NAME.cu beside the notebook."),
    argument_group("who explains"),
    argument("--provider", metavar="NAME", help="claude, codex, openai-compatible or an installed plug-in."),
    argument("--model", metavar="ID", help="Model id, in the provider's own words."),
    argument("--effort", metavar="LEVEL", help="Reasoning effort, in the provider's own words."),
)


@magics_class
class KernelsMagics(Magics):  # type: ignore[misc]
    """Holds ``%kernels``."""

    @declare("kernels", f"kernels [{'|'.join(ACTIONS)}] [NAME] [OTHER] [options]", KERNELS_ARGUMENTS)
    @no_var_expand  # type: ignore[untyped-decorator]
    @line_magic  # type: ignore[untyped-decorator]
    def kernels(self, line: str) -> None:
        """Look after the kernels that are kept beside the notebook.

        Versions are numbered backwards: NAME@0 is in place, NAME@1 the one before it. A version that was put back,
        and a kernel.cu that was edited, are verified before they are used.

            %kernels
            %kernels history softmax_cuda
            %kernels diff softmax_cuda@1 softmax_cuda
            %kernels rollback softmax_cuda 1
            %kernels edit softmax_cuda
            %kernels compare softmax_cuda softmax_by_hand
        """
        arguments = parse_line(self.kernels, line, prefix="%")
        _check_names(arguments)
        getattr(self, f"_{arguments.action}")(arguments)

    def _list(self, arguments: Namespace) -> None:
        from llmkernel.display.records import listing_bundle

        store = record_store(self.shell)
        found = [s for s in store.list() if arguments.record in (None, s.record.name)]
        self._publish(listing_bundle(found, str(store.directory), store.unreadable()))

    def _show(self, arguments: Namespace) -> None:
        from llmkernel.display.records import record_bundle

        name, version = split_name(arguments.record)
        self._publish(record_bundle(self._stored(name, version), label_of(name, version)))

    def _history(self, arguments: Namespace) -> None:
        from llmkernel.display.records import history_bundle

        name, _ = split_name(arguments.record)
        self._publish(history_bundle(name, versions_of(record_store(self.shell), name)))

    def _diff(self, arguments: Namespace) -> None:
        from llmkernel.display.records import diff_bundle

        first, second = arguments.record, arguments.other
        if second is None:
            name, version = split_name(first)
            first, second = (
                f"{name}@{int(version or 0) + 1 if (version or '0').isdigit() else version}",
                first,
            )
        pairs = [split_name(text) for text in (first, second)]
        before, after = (self._stored(*pair) for pair in pairs)
        self._publish(diff_bundle((label_of(*pairs[0]), before), (label_of(*pairs[1]), after)))

    def _rollback(self, arguments: Namespace) -> None:
        name, version = split_name(arguments.record)
        wanted = str(arguments.other)
        if version:
            raise UsageError(
                "rollback takes the kernel's name and the number of a version.",
                received=shown(f"{arguments.record} {wanted}"),
                next_step=f"Write %kernels rollback {name} {version}.",
            )
        store = record_store(self.shell)
        found = find_version(store, name, wanted)
        if not found.version:
            print(f"{name}@0 is the version in place.")  # noqa: T201 - the cell's output
            return
        stored = store.rollback(name, found.version)
        made = found.record.created[:16].replace("T", " ")
        print(f"{name}@{wanted}, made {made} UTC, is in place again: {stored.folder}")  # noqa: T201
        from llmkernel.magics.kernel_rollback import take_back

        told = take_back(self.shell, store, stored)
        if told:
            print(told)  # noqa: T201

    def _edit(self, arguments: Namespace) -> None:
        from llmkernel.magics.kernel_edit import edit_cell

        cell = edit_cell(self.shell, *split_name(arguments.record))
        self.shell.set_next_input(cell.text)
        against = (
            f"is judged against {cell.reference}" if cell.reference else "stays unverified without --from"
        )
        print(f"The source of {cell.origin} is in the cell below; it was not run. Run it: it {against}.")  # noqa: T201
        name = (cell.reference or "").partition(".")[0]
        if name and name not in self.shell.user_ns:
            print(f"There is no {name} in this notebook yet: run the cell that defines it first.")  # noqa: T201

    def _explain(self, arguments: Namespace) -> None:
        from llmkernel.magics.kernel_cell import quoted

        name, version = split_name(arguments.record)
        if version:
            raise UsageError(
                f"explain takes the kernel in place, not {arguments.record}.",
                next_step=f"Write %kernels explain {name}, or %kernels diff {arguments.record} {name}.",
            )
        words = [f"--kernel {name}"]
        for option in ("provider", "model", "effort"):
            value = getattr(arguments, option)
            words += [f"--{option}={quoted(value)}"] if value else []
        self.shell.run_line_magic("ask", f"{' '.join(words)} {_EXPLAIN}")

    def _profile(self, arguments: Namespace) -> None:
        from llmkernel.magics.kernel_runs import profile_bundle_of

        self._publish(profile_bundle_of(self.shell, arguments.record))

    def _compare(self, arguments: Namespace) -> None:
        from llmkernel.magics.kernel_runs import compare_bundle_of

        self._publish(compare_bundle_of(self.shell, arguments.record, arguments.other))

    def _export(self, arguments: Namespace) -> None:
        name, version = split_name(arguments.record)
        stored = self._stored(name, version)
        place = notebook_directory(self.shell) / Path(arguments.to or f"{name}.cu").expanduser()
        try:
            with place.open("x", encoding="utf-8", newline="\n") as file:
                file.write(stored.source)
        except OSError as error:
            raise RecordError(
                f"{name} cannot be written there.",
                rule="export makes a new file",
                received=f"{place}: {error.strerror or error}",
                next_step="Name another file with --to.",
            ) from error
        print(f"Wrote {place}")  # noqa: T201

    def _stored(self, name: str, version: str) -> StoredRecord:
        return find_version(record_store(self.shell), name, version)

    def _publish(self, bundle: dict[str, Any]) -> None:
        self.shell.display_pub.publish(bundle)


def _check_names(arguments: Namespace) -> None:
    action, record, other = arguments.action, arguments.record, arguments.other
    second = ACTIONS[action]
    if action != "list" and record is None:
        raise UsageError(
            f"%kernels {action} needs the name of a kernel.",
            next_step=f"Write %kernels {action} NAME{f' {second}' if second else ''}; %kernels lists the names.",
        )
    if second and other is None and action not in _OPTIONAL_SECOND:
        what = "the number of a version" if second == "N" else "two kernels"
        step = (
            f"%kernels history {record} lists the versions." if second == "N" else "%kernels lists the names."
        )
        raise UsageError(f"%kernels {action} needs {what}.", received=shown(record), next_step=step)
    if other is not None and not second:
        raise UsageError(
            f"%kernels does not know what to do with {shown(other)!r}.",
            rule=f"%kernels {action} takes one name.",
            next_step="%kernels? lists all options.",
        )
