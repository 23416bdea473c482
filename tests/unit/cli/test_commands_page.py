from __future__ import annotations

import argparse
from importlib import import_module
from pathlib import Path

import pytest

from llmkernel.cli.main import COMMANDS

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "commands.md"


@pytest.mark.parametrize("command", COMMANDS)
def test_the_page_names_every_command_and_option(command):
    page = PAGE.read_text(encoding="utf-8")
    parser = argparse.ArgumentParser(add_help=False)
    import_module(f"llmkernel.cli.{command}").add_arguments(parser)
    options = [o for action in parser._actions for o in action.option_strings if o.startswith("--")]

    assert f"`llmkernel {command}" in page
    section = next(s for s in page.split("\n## ") if f"`llmkernel {command}" in s.splitlines()[0])
    assert [o for o in options if f"`{o}" not in section] == []
