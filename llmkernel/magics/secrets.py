"""A cell that holds a key is not sent."""

from __future__ import annotations

from llmkernel.errors import UsageError


def refuse_secrets(text: str) -> None:
    """Refuse to send a cell that holds a key.

    Parameters
    ----------
    text : str
        The whole cell, its magic's line first.

    Raises
    ------
    llmkernel.errors.UsageError
        Names the line and the kind of key, never the key.
    """
    from llmkernel.prompts.redaction import find_secrets

    found = find_secrets(text)
    if found:
        raise UsageError(
            f"This cell is not sent: line {found[0].line} holds what looks like a secret ({found[0].kind}).",
            rule="A cell that holds a key is saved with the notebook, and is never sent.",
            next_step="Take it out, and make a new key if the notebook was shared. Keys come from the environment, the "
            "keyring or the key file: llmkernel doctor says which were found.",
        )
