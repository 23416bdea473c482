from __future__ import annotations

import subprocess
import sys

from llmkernel.config import LLMKernel, get_config


def state(shell):
    """What an extension can leave behind in a shell."""
    return (
        {kind: set(magics) for kind, magics in shell.magics_manager.magics.items()},
        set(shell.magics_manager.registry),
        list(shell.input_transformers_cleanup),
        list(shell.Completer.custom_matchers),
        list(shell.configurables),
        list(shell.events.callbacks["post_run_cell"]),
        dict(shell.inspector.mime_hooks),
        set(vars(shell)),
    )


def test_unloading_leaves_nothing_behind(bare_shell):
    before = state(bare_shell)
    manager = bare_shell.extension_manager

    manager.load_extension("llmkernel")
    assert bare_shell.find_cell_magic("cuda_from")
    manager.unload_extension("llmkernel")

    assert state(bare_shell) == before


def test_loading_twice_changes_nothing(shell):
    from llmkernel.extension import load

    before = state(shell)
    load(shell)

    assert state(shell) == before


def test_reloading_works(shell):
    counts = [len(part) for part in state(shell)]
    shell.extension_manager.reload_extension("llmkernel")

    assert [len(part) for part in state(shell)] == counts
    assert shell.find_cell_magic("cuda_from")


def test_config_magic_changes_the_session(shell):
    shell.run_line_magic("config", "LLMKernel.attempts = 2")

    assert get_config(shell).attempts == 2
    assert LLMKernel().attempts == 4


def test_help_explains_the_options(shell, capsys):
    shell.run_cell("%%cuda_from?")
    text = capsys.readouterr().out

    assert "%%cuda_from REFERENCE" in text
    assert "--tolerance" in text


def test_no_usage_holds_what_was_to_be_formatted(shell, capsys):
    for name in ("%%cuda_from", "%%cuda", "%ask", "%kernels", "%llm_usage"):
        shell.run_cell(f"{name}?")
        lines = capsys.readouterr().out.splitlines()
        assert any(line.strip().startswith(f"{name} ") for line in lines)
        assert not [line for line in lines if "{'" in line]


def test_hooks_of_others_stay(bare_shell):
    def hook(data):
        return [("Found", "by another")]

    bare_shell.inspector.mime_hooks = {"text/plain": hook}
    bare_shell.extension_manager.load_extension("llmkernel")
    assert "by another" in bare_shell.object_inspect_mime("print")["text/plain"]
    bare_shell.extension_manager.unload_extension("llmkernel")
    assert bare_shell.inspector.mime_hooks == {"text/plain": hook}


def test_importing_the_extension_is_light():
    code = """
import sys, llmkernel.extension, llmkernel.kernel, llmkernel.__main__, llmkernel.cli.main
heavy = ("numpy", "ml_dtypes", "torch", "cupy", "anthropic", "openai", "ipywidgets", "detect_secrets", "requests")
print([m for m in heavy if m in sys.modules])
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )

    assert done.stdout.strip() == "[]"
