"""Where keys come from: the environment, then the keyring, then the user's key file. Never a cell.

The key file is ``keys.toml`` in the user's configuration folder, one ``provider = "key"`` a line.
"""

from __future__ import annotations

import os
import tomllib
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from llmkernel.errors import ConfigurationError
from llmkernel.prompts.redaction import remember_secret

KEYRING_SERVICE = "llmkernel"


@dataclass(frozen=True)
class Key:
    """A key and where it was found; its value never appears in a representation."""

    value: str = field(repr=False)
    origin: str


def find_key(provider: str, variables: Sequence[str]) -> Key | None:
    """Return the key of `provider`, None where there is none.

    Parameters
    ----------
    provider : str
        Name in the keyring and in the key file.
    variables : sequence of str
        Environment variables, the first that is set wins.

    Raises
    ------
    ConfigurationError
        The key file is malformed.
    """
    for name in variables:
        if value := os.environ.get(name, "").strip():
            remember_secret(value)
            return Key(value, f"${name}")
    if value := _from_keyring(provider):
        remember_secret(value)
        return Key(value, f"keyring, service {KEYRING_SERVICE}")
    if value := _from_file(provider):
        remember_secret(value)
        return Key(value, str(key_file()))
    return None


def key_file() -> Path:
    """Return the path of the user's key file, which need not exist."""
    from platformdirs import user_config_dir

    return Path(user_config_dir("llmkernel", appauthor=False)) / "keys.toml"


def _from_keyring(provider: str) -> str:
    try:
        import keyring

        return (keyring.get_password(KEYRING_SERVICE, provider) or "").strip()
    except Exception:  # noqa: BLE001 - not installed, no backend, a locked one, D-Bus: the next place is asked
        return ""


def _from_file(provider: str) -> str:
    path = key_file()
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(
            f"{path} cannot be read: {error}.", next_step="Make it readable for you, or remove it."
        ) from None
    if os.name == "posix" and path.stat().st_mode & 0o077:
        warnings.warn(f"{path} can be read by other users. Run: chmod 600 '{path}'", stacklevel=4)
    try:
        value = tomllib.loads(text).get(provider, "")
    except tomllib.TOMLDecodeError as error:
        # The decoder's message quotes no value, only a position.
        raise ConfigurationError(
            f"{path} is not valid TOML: {error}.",
            rule='One `provider = "key"` a line.',
            next_step="Correct that line.",
        ) from None
    if not isinstance(value, str):
        raise ConfigurationError(
            f"{path}: the key of `{provider}` must be a string.",
            rule='One `provider = "key"` a line.',
            next_step="Write it between quotation marks.",
        )
    return value.strip()
