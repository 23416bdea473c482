"""Compiling in a second worker while the first one runs draws.

A worker does one thing after the other, and NVRTC one compilation at a time in a process. A full verification needs more
kernels than its first draws do, and copies of the source with sleeps in it: compiled in the spare worker, they are ready
when they are wanted.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

from llmkernel.evaluation.session import Compiled, Session
from llmkernel.evaluation.worker.client import POOL, Worker

# Emulated, the host compiler needs the processors that the draws run on.
DEVICES = frozenset(("cuda",))
# A wait without an end cannot be interrupted on Windows.
_POLL_SECONDS = 0.25


class Compilation:
    """A compilation in another worker, begun when it is made.

    Attributes
    ----------
    session : Session
        Runs draws of what was compiled, once `wait` has returned.
    kernels : tuple of str
    """

    def __init__(self, session: Session, source: str, kernels: Sequence[str], arch: str | None) -> None:
        self.session = session
        self.kernels = tuple(kernels)
        self._error: BaseException | None = None
        self._asked = (source, self.kernels, arch)
        self._thread = threading.Thread(target=self._compile, daemon=True, name="llmkernel-aside")
        self._thread.start()

    def _compile(self) -> None:
        try:
            self.session.compile(*self._asked)
        except BaseException as error:  # noqa: BLE001 - raised where it is waited for
            self._error = error

    @property
    def is_over(self) -> bool:
        """Whether it has ended, well or not."""
        return not self._thread.is_alive()

    def wait(self) -> Compiled:
        """Return what was compiled; raises what `Session.compile` raised."""
        while self._thread.is_alive():
            self._thread.join(_POLL_SECONDS)
        if self._error is not None:
            raise self._error
        return self.session.ensure_compiled()


class Aside:
    """The second worker of one judging, taken from the pool's spare with the first compilation.

    Parameters
    ----------
    device : str
    timeout : float
        Seconds that one execution may take.
    """

    def __init__(self, device: str, timeout: float) -> None:
        self.device = device
        self.timeout = timeout
        self.worker: Worker | None = None
        self._begun: list[Compilation] = []

    def begin(self, source: str, kernels: Sequence[str], arch: str | None) -> Compilation | None:
        """Begin to compile; None where that would take from the draws what it gives."""
        if self.device not in DEVICES:
            return None
        if self.worker is None or not self.worker.is_alive:
            self.worker = POOL.lend(self.device)
        session = Session(self.device, self.timeout, worker=self.worker)
        self._begun.append(Compilation(session, source, kernels, arch))
        return self._begun[-1]

    def begin_here(
        self, session: Session, source: str, kernels: Sequence[str], arch: str | None
    ) -> Compilation | None:
        """Begin to compile in the worker of `session` itself; None where the device's compiler has no time to spare."""
        if self.device not in DEVICES:
            return None
        self._begun.append(Compilation(session, source, kernels, arch))
        return self._begun[-1]

    def swap(self, session: Session, compilation: Compilation) -> Session:
        """Return the session of a compilation that is over, and take the worker of `session` for what comes next."""
        self.worker = session.worker
        return compilation.session

    def end(self) -> None:
        """Give the workers back; one that still compiles is ended, as nobody waits for it."""
        for compilation in self._begun:
            if compilation.is_over:
                POOL.take_back(compilation.session.worker)
            else:
                compilation.session.give_up()
                POOL.warm(self.device)
        self._begun.clear()
        self.worker = None
        # An interrupt may have come before anyone held what was lent.
        POOL.take_back_all(self.device)
