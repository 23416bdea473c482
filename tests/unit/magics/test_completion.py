from __future__ import annotations

import numpy as np
import pytest

from .conftest import SOURCE, save_record


@pytest.fixture
def complete(shell):
    class Module:
        def forward(self, x):
            return x

        @property
        def shape(self):
            raise AssertionError("a property ran for a completion")

    shell.push({"softmax": lambda x: x, "rows": np.ones((2, 2)), "np": np, "count": 3, "model": Module()})

    def matches(line, cell="\nwhat it does"):
        text = line + cell
        from IPython.core.completer import provisionalcompleter

        with provisionalcompleter():
            return [
                c.text for c in shell.Completer.completions(text, len(line)) if c.start <= c.end <= len(line)
            ]

    return matches


def test_options_by_prefix(complete):
    assert set(complete("%%cuda_from softmax --re")) == {"--replay"}
    assert {"--tolerance", "--target", "--timeout"} <= set(complete("%%cuda_from softmax --t"))


def test_options_are_offered_once_except_repeatable_ones(complete):
    found = complete("%%cuda_from softmax --quiet --baseline softmax --")
    assert "--quiet" not in found
    assert {"--baseline", "--device"} <= set(found)


@pytest.mark.parametrize("line", ["%%cuda_from softmax --device ", "%%cuda_from softmax --device="])
def test_choices(complete, line):
    assert set(complete(line)) == {"auto", "cuda", "cpu"}


def test_providers(complete):
    assert set(complete("%%cuda_from softmax --provider c")) == {"claude", "codex"}
    assert "openai-compatible" in complete("%%cuda_from softmax --provider=open")


@pytest.fixture
def models(monkeypatch, tmp_path):
    path = tmp_path / "models.toml"
    path.write_text('[models.mine-1]\nprovider = "claude"\nefforts = ["calm"]\n')
    monkeypatch.setenv("LLMKERNEL_MODELS", str(path))
    return path


def test_models_and_efforts_are_those_of_the_provider_and_of_the_users_own_table(complete, models):
    assert {"mine-1", "claude-opus-5-5"} <= set(complete("%%cuda_from softmax --provider claude --model "))
    assert "mine-1" not in complete("%%cuda_from softmax --provider=codex --model=")
    assert {"mine-1", "gpt-6.2-sol"} <= set(complete("%ask --model "))
    assert complete("%%cuda_from softmax --model mine-1 --effort ") == ["calm"]
    assert {"calm", "high"} <= set(complete("%%cuda_from softmax --effort "))


def test_a_malformed_table_completes_nothing_and_says_nothing(complete, models, capsys):
    models.write_text("[models")

    assert "mine-1" not in complete("%%cuda_from softmax --model ")
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("%%cuda_from softmax --checks memcheck,r", ["racecheck"]),
        ("%%cuda_from softmax --arch sm_90", ["sm_90", "sm_90a"]),
        ("%%cuda_from softmax --name ", ["softmax_cuda"]),
        ("%%cuda_from np.exp --name ", ["exp_cuda"]),
        ("%%cuda_from softmax --attempts ", ["4"]),
        ("%config LLMKernel.device = ", ["'auto'", "'cuda'", "'cpu'"]),
        ("%config LLMKernel.provider = 'cl", ["claude"]),
        ("%config LLMKernel.quiet=", ["True", "False"]),
    ],
)
def test_other_values(complete, line, expected):
    assert complete(line) == expected


def test_underscored_names_only_where_they_are_asked_for(complete):
    assert complete("%%cuda_from model.") == ["model.forward", "model.shape"]
    assert "model.__class__" in complete("%%cuda_from model.__cl")


def test_references_come_first_and_only_while_there_is_none(complete):
    assert complete("%%cuda_from ")[0] == "softmax"
    assert complete("%%cuda_from so") == ["softmax"]
    assert "softmax" not in complete("%%cuda_from softmax ")
    assert "softmax" in complete("%%cuda_from --device cpu ")


def test_dotted_references(complete):
    assert "np.linalg" in complete("%%cuda_from np.lin")
    assert complete("%%cuda_from model.forw") == ["model.forward"]


@pytest.mark.parametrize("line", ["%%cuda_from softmax --inputs ro", '%%cuda_from softmax --inputs "x=ro'])
def test_arrays_for_inputs(complete, line):
    assert "rows" in complete(line)
    assert "softmax" not in complete(line)


def test_baselines_are_callables(complete):
    found = complete("%%cuda_from softmax --baseline ")
    assert "softmax" in found
    assert "rows" not in found


def test_kernels(complete, shell, tmp_path):
    shell.run_line_magic("config", f"LLMKernel.records_dir = {str(tmp_path)!r}")
    save_record(tmp_path, "kept_cuda")

    save_record(tmp_path, "kept_cuda", SOURCE.replace("void f", "void  f"), "2026-05-01T08:00:00Z")

    assert {"history", "rollback", "edit", "profile"} <= set(complete("%kernels ", ""))
    assert complete("x = 1\n%kernels hist", "")[:1] == ["history"]
    for line in ("history ke", "compare other ke", "diff kept_cuda ke", "edit ke"):
        assert complete(f"%kernels {line}", "") == ["kept_cuda"]
    assert complete("%kernels diff kept_cuda@", "")[0] == "1"
    assert complete("%kernels rollback kept_cuda ", "")[0] == "1"
    assert "kept_cuda" not in complete("%kernels history kept_cuda ", "")
    assert "--provider" in complete("%kernels explain kept_cuda --", "")


def test_questions(complete, shell, tmp_path):
    shell.run_line_magic("config", f"LLMKernel.records_dir = {str(tmp_path)!r}")
    save_record(tmp_path, "kept_cuda")

    assert {"--context", "--code", "--cells"} <= set(complete("%ask --c", ""))
    assert "--show-context" in complete("%%ask --s")
    assert {"rows", "model", "count"} <= set(complete("%ask --context ", ""))
    assert complete("%ask --context rows,cou", "") == ["count"]
    assert complete("%ask --kernel ke", "") == ["kept_cuda"]
    assert complete("%ask --provider cla", "") == ["claude"]
    assert complete("%llm_usage --r", "") == ["--reset"]
    assert complete("%ask why is ro", "") == ["rows"]


def test_cuda(complete):
    assert "softmax" not in complete("%%cuda ")
    assert complete("%%cuda fast --from so") == ["softmax"]
    assert set(complete("%%cuda fast --fr")) == {"--from"}


def test_the_magics_name(complete):
    assert "%%cuda_from" in complete("%%cuda_f", "")


def test_the_body_and_other_cells_are_left_to_ipython(complete):
    assert "--replay" not in complete("%%cuda_from softmax\n--re", "")
    assert "count" in complete("x = cou", "")
