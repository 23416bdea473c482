"""``llmkernel uninstall``: removes a kernelspec that ``llmkernel install`` or the wheel wrote."""

from __future__ import annotations

import argparse
import shutil

from llmkernel.cli.install import add_place
from llmkernel.cli.kernelspec import KERNEL_NAME, check_name, find_installed, is_ours, kernels_directory
from llmkernel.errors import ConfigurationError, UsageError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``llmkernel uninstall``."""
    add_place(parser)
    parser.add_argument("--name", default=KERNEL_NAME, help="kernel name (%(default)s)")


def run(arguments: argparse.Namespace) -> int:
    """Remove the kernelspec: from the place that is named, else the first that Jupyter finds.

    Raises
    ------
    llmkernel.errors.UsageError
        When there is none of this name, or it is another package's.
    llmkernel.errors.ConfigurationError
        When it cannot be removed.
    """
    name = check_name(arguments.name)
    if arguments.user or arguments.prefix or arguments.sys_prefix:
        directory = kernels_directory(arguments.prefix, is_user=arguments.user) / name
        found = [directory] if (directory / "kernel.json").is_file() else []
    else:
        found = find_installed(name)
    if not found:
        raise UsageError(
            f"There is no Jupyter kernel called {name} here.", next_step="jupyter kernelspec list shows all."
        )
    if not is_ours(found[0]):
        raise UsageError(
            f"The Jupyter kernel {name} is not one of this package.",
            received=str(found[0]),
            next_step=f"jupyter kernelspec uninstall {name} removes any.",
        )
    try:
        shutil.rmtree(found[0])
    except OSError as error:
        raise ConfigurationError(
            "The kernelspec cannot be removed.",
            received=f"{found[0]}: {error.strerror or error}",
            next_step="Remove that folder yourself, with the rights that it needs.",
        ) from error
    print(f"Removed the Jupyter kernel {name} from {found[0]}")
    return 0
