"""An interrupt at any moment of a save leaves the old or the new record, no lock, no descriptor."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import pytest

from llmkernel.records.ledger import VerifiedLedger
from llmkernel.records.store import RecordStore
from tests.unit.records.test_store import version

ROOT = str(Path(sys.modules[RecordStore.__module__].__file__).parent)


class Interrupt:
    """Raises `KeyboardInterrupt` before the n-th bytecode instruction that the main thread executes in the package."""

    def __init__(self, moment: int) -> None:
        self.left = moment

    def __enter__(self) -> None:
        sys.settrace(self._enter)

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)

    def _enter(self, frame, event, argument):
        if not frame.f_code.co_filename.startswith(ROOT):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return self._step

    def _step(self, frame, event, argument):
        if event == "opcode":
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt
        return self._step


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts descriptors through /proc")
@pytest.mark.skipif(sys.gettrace() is not None, reason="another tool traces")
def test_an_interrupt_at_any_moment_of_a_save(tmp_path):
    outcomes = []
    first, second, third = version(1), version(2), version(3)
    for moment in range(1, 2000):
        store = RecordStore(tmp_path / str(moment), ledger=VerifiedLedger(tmp_path / "ledger"))
        store.save(*first, "one")
        descriptors = len(list(Path("/proc/self/fd").iterdir()))
        try:
            with Interrupt(moment):
                store.save(*second, "two")
        except KeyboardInterrupt as error:
            kept = error  # as a notebook keeps the last traceback, with all its frames
        else:
            break
        for thread in threading.enumerate():
            if thread.name == "llmkernel-records":
                thread.join()
        assert len(list(Path("/proc/self/fd").iterdir())) == descriptors
        found = store.load("double_it")
        is_new = found.source == second[1]
        assert not found.is_edited
        assert store.transcript(found) == ("two" if is_new else "one")
        store.save(*third, "three")  # and nobody holds the lock
        outcomes.append(is_new)
        del kept
    assert len(outcomes) > 20
    assert outcomes == sorted(outcomes)
    assert set(outcomes) == {False, True}
