"""``%kernels``: the kernels beside the notebook; their earlier versions, sources, and the way back."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from IPython.core.magic import Magics, line_magic, magics_class, no_var_expand
from IPython.core.magic_arguments import argument

from llmkernel.config import get_config
from llmkernel.errors import RecordError, UsageError
from llmkernel.magics.notebook import notebook_directory
from llmkernel.magics.options import declare
from llmkernel.magics.parsing import parse_line, suggestion

if TYPE_CHECKING:
    from llmkernel.records.store import RecordStore, StoredRecord

ACTIONS = ("list", "history", "source", "restore", "export")

KERNELS_ARGUMENTS = (
    argument(
        "action",
        nargs="?",
        choices=ACTIONS,
        default="list",
        help="""list: all kernels; history: earlier versions of NAME; source: its .cu file; restore: put an
        earlier version back; export: write its .cu file elsewhere.""",
    ),
    argument("record", metavar="NAME", nargs="?", help="Name of a kernel."),
    argument("--version", metavar="VERSION", help="An earlier version, as `history` names it."),
    argument("--to", metavar="FILE", help="Where `export` writes; default: NAME.cu beside the notebook."),
)


@magics_class
class KernelsMagics(Magics):  # type: ignore[misc]
    """Holds ``%kernels``."""

    @declare("kernels", "kernels [list|history|source|restore|export] [NAME] [options]", KERNELS_ARGUMENTS)
    @no_var_expand  # type: ignore[untyped-decorator]
    @line_magic  # type: ignore[untyped-decorator]
    def kernels(self, line: str) -> None:
        """Look after the kernels that are kept beside the notebook.

        A version that was put back, and a kernel.cu that was edited, are verified when their cell runs again.

            %kernels
            %kernels history softmax_cuda
            %kernels restore softmax_cuda --version 20260412T101500Z-1a2b3c4d
        """
        arguments = parse_line(self.kernels, line, prefix="%")
        store = record_store(self.shell)
        if arguments.action == "list":
            self._list(store, arguments)
            return
        if arguments.record is None:
            raise UsageError(
                f"%kernels {arguments.action} needs the name of a kernel.",
                next_step=f"Write %kernels {arguments.action} NAME; %kernels lists the names.",
            )
        getattr(self, f"_{arguments.action}")(store, arguments)

    def _list(self, store: RecordStore, arguments: Namespace) -> None:
        from llmkernel.display.records import listing_title, records_bundle

        found = [s for s in store.list() if arguments.record in (None, s.record.name)]
        self.shell.display_pub.publish(
            records_bundle(listing_title(len(found), str(store.directory)), found, store.unreadable())
        )

    def _history(self, store: RecordStore, arguments: Namespace) -> None:
        from llmkernel.display.records import records_bundle

        current = _find(store, arguments.record, None)
        versions = [current, *store.history(arguments.record)]
        self.shell.display_pub.publish(
            records_bundle(f"Versions of {arguments.record}, newest first", versions)
        )

    def _source(self, store: RecordStore, arguments: Namespace) -> None:
        from llmkernel.display.html_page import frame
        from llmkernel.display.source import highlight

        stored = _find(store, arguments.record, arguments.version)
        html = str(frame(highlight(stored.source), f"Source of {arguments.record}"))
        self.shell.display_pub.publish({"text/plain": stored.source, "text/html": html})

    def _restore(self, store: RecordStore, arguments: Namespace) -> None:
        if arguments.version is None:
            raise UsageError(
                "%kernels restore needs --version.",
                next_step=f"%kernels history {arguments.record} lists the versions.",
            )
        stored = store.rollback(arguments.record, arguments.version)
        print(f"{arguments.version} is in place again: {stored.folder}")  # noqa: T201 - the cell's output
        print(f"Run the cell that makes {arguments.record} again to use it.")  # noqa: T201

    def _export(self, store: RecordStore, arguments: Namespace) -> None:
        stored = _find(store, arguments.record, arguments.version)
        place = notebook_directory(self.shell) / Path(arguments.to or f"{arguments.record}.cu").expanduser()
        try:
            with place.open("x", encoding="utf-8", newline="\n") as file:
                file.write(stored.source)
        except OSError as error:
            raise RecordError(
                f"{arguments.record} cannot be written there.",
                rule="export makes a new file",
                received=f"{place}: {error.strerror or error}",
                next_step="Name another file with --to.",
            ) from error
        print(f"Wrote {place}")  # noqa: T201


def record_store(ipython: Any) -> RecordStore:
    """Return the records beside the notebook."""
    from llmkernel.records.store import RecordStore

    config = get_config(ipython)
    return RecordStore(notebook_directory(ipython) / Path(config.records_dir).expanduser())


def _find(store: RecordStore, name: str, version: str | None) -> StoredRecord:
    if version is not None:
        found = next((s for s in store.history(name) if s.version == version), None)
        names, what = [s.version for s in store.history(name)], f"version {version} of {name}"
    else:
        found = store.load(name)
        names, what = [s.record.name for s in store.list()], f"kernel called {name}"
    if found is None:
        raise RecordError(
            f"There is no {what}.",
            received=str(store.directory),
            next_step=f"{suggestion(version or name, names)}%kernels lists what is there.",
        )
    return found
