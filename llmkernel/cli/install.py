"""``llmkernel install``: writes a kernelspec that names this interpreter by its full path."""

from __future__ import annotations

import argparse

from llmkernel.cli.kernelspec import KERNEL_NAME, check_name, kernels_directory, kernelspec, write
from llmkernel.errors import UsageError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``llmkernel install``."""
    add_place(parser)
    parser.add_argument(
        "--name", default=KERNEL_NAME, help="kernel name that Jupyter knows it by (%(default)s)"
    )
    parser.add_argument("--display-name", metavar="TEXT", help="name that is shown in the launcher")
    parser.add_argument(
        "--env",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="environment variable for the kernel; may be repeated; others can read it: no keys",
    )


def add_place(parser: argparse.ArgumentParser) -> None:
    """Declare the options that say where kernelspecs are."""
    place = parser.add_mutually_exclusive_group()
    place.add_argument("--user", action="store_true", help="for the current user")
    place.add_argument("--sys-prefix", action="store_true", help="into this Python environment (default)")
    place.add_argument("--prefix", metavar="DIR", help="into DIR/share/jupyter/kernels")


def run(arguments: argparse.Namespace) -> int:
    """Write the kernelspec and say where it is.

    Raises
    ------
    llmkernel.errors.UsageError
        For a bad name or NAME=VALUE.
    llmkernel.errors.ConfigurationError
        When the place cannot be written.
    """
    name = check_name(arguments.name)
    env = parse_environment(arguments.env)
    directory = kernels_directory(arguments.prefix, is_user=arguments.user) / name
    write(directory, kernelspec(arguments.display_name, env))
    print(f"Installed the Jupyter kernel {name} in {directory}")
    from jupyter_core.paths import jupyter_path

    if str(directory.parent) not in jupyter_path("kernels"):
        print(f"Jupyter does not search there: set JUPYTER_PATH={directory.parent.parent}")
    return 0


def parse_environment(items: list[str]) -> dict[str, str]:
    """Read NAME=VALUE items; a later one wins.

    Raises
    ------
    llmkernel.errors.UsageError
        When an item has no name or no equals sign.
    """
    env = {}
    for item in items:
        name, equals, value = item.partition("=")
        if not equals or not name.strip() or "\0" in item:
            raise UsageError(
                "--env is not NAME=VALUE.",
                received=repr(item),
                next_step="Write --env CUDA_VISIBLE_DEVICES=0, quoted where the value holds blanks.",
            )
        env[name.strip()] = value
    return env
