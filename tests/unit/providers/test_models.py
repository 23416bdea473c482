"""The table of models and the user's file over it."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import llmkernel
from llmkernel.errors import ConfigurationError
from llmkernel.providers.base import Usage
from llmkernel.providers.models import Price, cost_usd, load_models, user_models_path

USAGE = Usage(1_000_000, 0, 0, 100_000)


@pytest.fixture
def user_file(tmp_path, monkeypatch):
    """A function that writes the user's file."""
    path = tmp_path / "models.toml"
    monkeypatch.setenv("LLMKERNEL_MODELS", str(path))

    def write(text):
        path.write_text(text, "utf-8")
        return path

    return write


def test_every_default_is_a_model_that_is_known_for_its_provider():
    table = load_models()

    assert {"claude", "codex"} <= table.defaults.keys()
    for provider, model in table.defaults.items():
        assert table.find(model).provider == provider


def test_every_price_is_dated_and_sourced():
    for model in load_models().models.values():
        assert model.price is None or (model.price.date and model.price.source)


def test_a_default_effort_is_one_of_the_models_own():
    for model in load_models().models.values():
        assert model.effort is None or model.effort in model.efforts


def test_no_module_names_a_model():
    ids = load_models().models
    root = Path(llmkernel.__file__).parent

    for path in root.rglob("*.py"):
        text = path.read_text("utf-8")
        assert not [i for i in ids if i in text], path


def test_an_id_with_a_date_is_the_model_without():
    assert load_models().find("gpt-6.2-sol-2026-11-17").id == "gpt-6.2-sol"
    assert load_models().find("gpt-6.2-sol-mini") is None


def test_a_cost_is_known_only_where_every_price_is():
    assert cost_usd(USAGE, "claude-opus-5-5") == pytest.approx(4 + 2)
    assert cost_usd(USAGE, "nobody-knows") is None
    assert Price(1.0, 2.0).cost_usd(Usage(10, 5, 0, 1)) is None
    assert Price(1.0, 2.0).cost_usd(Usage(0, 0, 0, 0)) == 0


def test_a_long_request_costs_more_as_a_whole():
    short, long = Usage(272_000, 0, 0, 1000), Usage(272_001, 0, 0, 1000)

    assert cost_usd(short, "gpt-6.2-sol") == pytest.approx(0.272 * 2 + 0.001 * 10)
    assert cost_usd(long, "gpt-6.2-sol") == pytest.approx(0.272001 * 4 + 0.001 * 15)


@given(st.lists(st.integers(0, 10**7), min_size=4, max_size=4))
def test_a_cost_is_never_negative_and_grows_with_output(counts):
    fresh, cached, written, out = counts
    price = Price(4.0, 20.0, 0.2, 5.0)
    usage = Usage(fresh + cached + written, cached, written, out)

    cost = price.cost_usd(usage)

    assert cost >= 0
    assert price.cost_usd(usage + Usage(output_tokens=1)) > cost


def test_the_users_file_is_merged_key_by_key(user_file):
    user_file(
        '[defaults]\nclaude = "my-claude"\n'
        '[models."my-claude"]\nprovider = "claude"\nprice = { input = 1, output = 2 }\n'
        '[models."gpt-6.2-sol"]\nreply_tokens = 7\n'
        '[models."claude-opus-5-5".price]\noutput = 30.0\n'
    )

    table = load_models()

    assert (table.default("claude"), table.default("codex")) == ("my-claude", "gpt-6.2-sol")
    assert table.find("gpt-6.2-sol").reply_tokens == 7
    assert table.find("gpt-6.2-sol").context_tokens == 1_050_000
    assert (table.find("claude-opus-5-5").price.input, table.find("claude-opus-5-5").price.output) == (
        4.0,
        30.0,
    )


def test_an_edit_of_the_users_file_is_seen_without_a_restart(user_file):
    path = user_file('[defaults]\nclaude = "one"\n')
    assert load_models().default("claude") == "one"

    path.write_text('[defaults]\nclaude = "two"\n', "utf-8")
    os.utime(path, ns=(1, 1))

    assert load_models().default("claude") == "two"


@pytest.mark.parametrize(
    ("text", "line", "word"),
    [
        ('[defaults]\nclaude = "x', 2, "TOML"),
        ('\n\n[modles."x"]\nprovider = "claude"', 3, "modles"),
        ('[models."x"]\nprovider = "claude"\nefort = "low"', 3, "efort"),
        ('[models."x"]\nprovider = "claude"\nreply_tokens = "many"', 3, "reply_tokens"),
        ('[models."x"]\nprovider = "claude"\nreply_tokens = true', 3, "reply_tokens"),
        ('[models."x"]\nprovider = "claude"\nprice = { input = -1, output = 1 }', 3, "input"),
        ('[models."x"]\nprovider = "claude"\nprice = { input = 1 }', 1, "output"),
        ('[models."x"]\nprovider = "claude"\nefforts = [1]', 3, "efforts"),
        ('[models."new"]\nreply_tokens = 1', 1, "provider"),
        ("defaults = 3", 1, "defaults"),
        ("[defaults]\nclaude = 3", 2, "claude"),
    ],
)
def test_a_malformed_file_is_refused_by_name_and_line(text, line, word, user_file):
    path = user_file(text)

    with pytest.raises(ConfigurationError) as caught:
        load_models()

    assert str(path) in str(caught.value)
    assert f"line {line}" in str(caught.value)
    assert word in str(caught.value)


@given(st.text())
def test_any_file_is_a_table_or_a_configuration_error(text):
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        path = Path(folder) / "models.toml"
        path.write_bytes(text.encode("utf-8", "surrogatepass"))
        patch.setenv("LLMKERNEL_MODELS", str(path))
        with contextlib.suppress(ConfigurationError):
            assert load_models().default("codex")


def test_a_named_file_must_be_there(monkeypatch, tmp_path):
    monkeypatch.setenv("LLMKERNEL_MODELS", str(tmp_path / "absent.toml"))

    with pytest.raises(ConfigurationError, match=r"absent\.toml"):
        load_models()


def test_without_a_variable_the_file_is_in_the_configuration_folder():
    assert str(user_models_path()).startswith(os.environ["XDG_CONFIG_HOME"])
