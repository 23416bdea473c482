"""What a rollback does for the notebook: the callable is the earlier version too, verified like any replay."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from llmkernel.config import get_config
from llmkernel.magics.kernel_names import alive

if TYPE_CHECKING:
    from llmkernel.records.store import RecordStore, StoredRecord


def take_back(ipython: Any, store: RecordStore, stored: StoredRecord) -> str:
    """Let the notebook's kernel be `stored` again, where it is one for the same problem.

    It is verified first, unless this machine verified exactly this record before; its report is left in the cell.

    Returns
    -------
    str
        What the user has to do where the notebook's kernel was not replaced; empty where it was.

    Raises
    ------
    llmkernel.errors.NotAcceptedError
        When it does not pass here.
    """
    name, record = stored.record.name, stored.record
    if record.is_unverified:
        return f"It is unverified: %kernels edit {name} opens its cell; run it to use it."
    kernel = alive(ipython, name)
    if kernel is None or not kernel.report.is_verified:
        return f"Run the cell that makes {name} to use it."
    from llmkernel.synthesis.loop import LoopOptions
    from llmkernel.synthesis.replay import recorded_problem, replay

    if recorded_problem(kernel.problem).key != record.key:
        return (
            f"It was made for another reference, intent or signature than the {name} of this notebook, "
            "which is as it was."
        )
    from llmkernel.magics.output import CellOutput

    config = get_config(ipython)
    with CellOutput(name, quiet=config.quiet, live=config.live) as output:
        again = replay(store, stored, kernel.problem, kernel.domain.device, LoopOptions(), output)
        output.finish(again)
    ipython.push({name: again})
    return ""
