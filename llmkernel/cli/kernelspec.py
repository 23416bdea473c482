"""Jupyter's kernelspec: where its files come from, where it goes, and how it is removed again."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from llmkernel.errors import ConfigurationError, UsageError

KERNEL_NAME = "llm-cuda"
_MODULE = "llmkernel"


def resources() -> Path:
    """Return the directory of `kernel.json` and the logos.

    Raises
    ------
    llmkernel.errors.ConfigurationError
        When the installation lacks them.
    """
    package = Path(__file__).parent.parent
    # In a wheel they are inside the package as well, in a source tree beside it.
    for directory in (package / "kernelspec", package.parent / "kernelspec"):
        if (directory / "kernel.json").is_file():
            return directory
    raise ConfigurationError(
        "The kernelspec's files are missing from this installation.",
        received=str(package),
        next_step="Install llmkernel again.",
    )


def kernelspec(display_name: str | None, env: Mapping[str, str]) -> dict[str, Any]:
    """Return the contents of a `kernel.json` that starts this very interpreter."""
    spec: dict[str, Any] = json.loads((resources() / "kernel.json").read_text(encoding="utf-8"))
    spec["argv"] = [sys.executable, *spec["argv"][1:]]
    if display_name:
        spec["display_name"] = display_name
    if env:
        spec["env"] = dict(env)
    return spec


def kernels_directory(prefix: str | None, *, is_user: bool) -> Path:
    """Return the directory that kernelspecs go to, below `prefix` or of the current user."""
    if is_user:
        from jupyter_core.paths import jupyter_data_dir

        return Path(jupyter_data_dir()) / "kernels"
    return Path(prefix or sys.prefix).expanduser().absolute() / "share" / "jupyter" / "kernels"


def check_name(name: str) -> str:
    """Return `name` in lower case, as Jupyter looks it up.

    Raises
    ------
    llmkernel.errors.UsageError
        When Jupyter would not find it.
    """
    if not re.fullmatch(r"[A-Za-z0-9._-]+", name) or not name.strip("."):
        raise UsageError(
            "Jupyter does not take this kernel name.",
            rule="A kernel name holds ASCII letters, digits, dots, dashes and underscores.",
            received=repr(name),
            next_step=f"Choose another, such as {KERNEL_NAME}; --display-name may be anything.",
        )
    return name.lower()


def write(directory: Path, spec: Mapping[str, Any]) -> None:
    """Write `spec` and the logos into `directory`, which is replaced.

    Raises
    ------
    llmkernel.errors.ConfigurationError
        When the place cannot be written, or belongs to another kernel.
    """
    source = resources()
    try:
        if (directory / "kernel.json").exists() and not is_ours(directory):
            raise ConfigurationError(
                "There is another kernel of this name.",
                received=str(directory),
                next_step="Choose another with --name.",
            )
        directory.mkdir(parents=True, exist_ok=True)
        for logo in source.glob("logo-*"):
            shutil.copyfile(logo, directory / logo.name)
        text = json.dumps(spec, indent=2, ensure_ascii=False) + "\n"
        (directory / "kernel.json").write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(
            "The kernelspec cannot be written.",
            received=f"{directory}: {error.strerror or error}",
            next_step="Use --user, or --prefix with a directory that you may write.",
        ) from error


def is_ours(directory: Path) -> bool:
    """Whether the kernelspec in `directory` starts this package's kernel."""
    try:
        argv = json.loads((directory / "kernel.json").read_text(encoding="utf-8"))["argv"]
    except (OSError, ValueError, LookupError, TypeError):
        return False
    return isinstance(argv, list) and _MODULE in argv


def find_installed(name: str) -> list[Path]:
    """Return the directories of the kernelspecs called `name`, in Jupyter's order of search."""
    from jupyter_core.paths import jupyter_path

    found = (Path(directory) / name for directory in jupyter_path("kernels"))
    return [directory for directory in found if (directory / "kernel.json").is_file()]
