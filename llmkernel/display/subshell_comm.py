"""A comm that hears of the front end while a cell runs; needs no ipywidgets."""

from __future__ import annotations

from typing import Any

from comm.base_comm import BaseComm

WIDGET_TARGET = "jupyter.widget"


class SubshellComm(BaseComm):
    """A comm whose messages are handled in the subshell to which the front end sends them.

    ipykernel's own sends a comm's messages back to the shell that last wrote to it: the main one, which is busy as long
    as the cell runs.
    """

    def publish_msg(
        self, msg_type: str, data: Any = None, metadata: Any = None, buffers: Any = None, **keys: Any
    ) -> None:
        """Send one message to the front end, as one that no shell sent."""
        from ipykernel.kernelbase import Kernel

        if not Kernel.initialized():
            return
        kernel = Kernel.instance()
        kernel.session.send(
            kernel.iopub_socket,
            msg_type,
            {"data": data or {}, "comm_id": self.comm_id, **keys},
            metadata=metadata or {},
            parent=kernel.get_parent(),
            ident=f"comm-{self.comm_id}".encode(),
            buffers=buffers,
        )
