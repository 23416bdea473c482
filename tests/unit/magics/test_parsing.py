from __future__ import annotations

import argparse
import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmkernel.config import LLMKernel
from llmkernel.errors import UsageError
from llmkernel.magics.cuda import CudaMagics
from llmkernel.magics.cuda_from import CudaFromMagics
from llmkernel.magics.options import CudaFromOptions, CudaOptions, parse_options
from llmkernel.magics.parsing import split_line, workloads


def parse(line, **config):
    return parse_options(CudaFromOptions, CudaFromMagics.cuda_from, line, LLMKernel(**config))


def refusal(line):
    with pytest.raises(UsageError) as caught:
        parse(line)
    return caught.value


def test_defaults_come_from_the_configuration():
    options = parse("softmax", attempts=7, device="cpu", replay="never", quiet=True, timeout=9.5)

    assert (options.attempts, options.device, options.replay) == (7, "cpu", "never")
    assert (options.quiet, options.timeout) == (True, 9.5)
    assert (options.reference, options.name, options.baseline, options.shapes) == (
        "softmax",
        "softmax_cuda",
        (),
        None,
    )
    assert options.show_prompt is False


def test_what_belongs_to_the_provider_is_left_to_it():
    options = parse(
        "softmax --provider codex", provider="claude", model="one of claude's", effort="high", max_tokens=9
    )

    assert (options.provider, options.model, options.effort, options.max_tokens) == (
        "codex",
        None,
        None,
        None,
    )


def test_the_line_wins_over_the_configuration():
    options = parse(
        "f --attempts 2 --device cuda --model=a --max-tokens 5 --tolerance 1e-3", attempts=7, model="m"
    )

    assert (options.attempts, options.device, options.model) == (2, "cuda", "a")
    assert (options.max_tokens, options.tolerance) == (5, 1e-3)


@pytest.mark.parametrize(
    ("line", "name"),
    [("model.forward", "forward_cuda"), ("np.linalg.norm", "norm_cuda"), ("f --name fast_f", "fast_f")],
)
def test_the_name_is_the_references_last_part(line, name):
    assert parse(line).name == name


def test_values_with_blanks_are_quoted():
    options = parse(
        """f --inputs "x, w=a['k'][1:]" --shapes 'M=1023, N=4097; M=1,N=0' --baseline g --baseline h.i"""
    )

    assert options.inputs == "x, w=a['k'][1:]"
    assert options.shapes == ({"M": 1023, "N": 4097}, {"M": 1, "N": 0})
    assert options.baseline == ("g", "h.i")


@pytest.mark.parametrize("line", ["f --model {key} more", "f '{key}", "f --attempts {key}", "f --name {key}"])
def test_keys_are_not_repeated(line):
    key = "sk-ant-api03-" + "Zq8" * 20
    assert key not in str(refusal(line.format(key=key)))


def test_a_value_with_a_leading_dash_needs_an_equals_sign():
    assert parse("f --model=-x").model == "-x"
    error = refusal("f --model -x")
    assert "--model=-x" in error.next_step
    assert "equals sign" in error.rule


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("", "name of a reference"),
        ("--quiet", "name of a reference"),
        ("f --attempts", "--attempts needs a value"),
        ("f --attempts 0", "at least 1"),
        ("f --attempts many", "at least 1"),
        ("f --tolerance -1", "positive"),
        ("f --timeout nan", "positive"),
        ("f --device gpu", "cuda"),
        ("f --replay sometimes", "never"),
        ("f --name 2fast", "Python name"),
        ("f --name class", "Python name"),
        ("f --shapes M:3", "M=1023"),
        ("f --shapes M=3,M=4", "twice"),
        ("f --shapes M=-3", "M=1023"),
        ("f --shapes ;", "M=1023"),
        ("f --inputs 'x", "quotation"),
        ("f make it fast", "make"),
        ("f {x} $HOME", "{x}"),
        ("f --quiet=yes", "--quiet"),
        ("f --att 3", "--att"),
    ],
)
def test_a_line_that_cannot_be_understood_is_refused(line, says):
    error = refusal(line)
    assert says in str(error)
    assert error.next_step


def test_the_line_of_cuda():
    def parse_cuda(line):
        return parse_options(CudaOptions, CudaMagics.cuda, line, LLMKernel(device="cpu"))

    options = parse_cuda("fast --from np.exp --baseline g")
    assert (options.name, options.reference, options.baseline, options.device) == (
        "fast",
        "np.exp",
        ("g",),
        "cpu",
    )
    assert (parse_cuda("fast").reference, parse_cuda("--from f").name) == (None, "f_cuda")
    for line, says in [("2f --from f", "Python name"), ("fast --from", "--from needs a value")]:
        with pytest.raises(UsageError, match=says):
            parse_cuda(line)


@pytest.mark.parametrize(
    ("line", "suggested"),
    [
        ("f --atempts 3", "--attempts"),
        ("--providr claude", "--provider"),
        ("f --show_prompt", "--show-prompt"),
    ],
)
def test_an_unknown_option_gets_a_suggestion(line, suggested):
    assert f"Did you mean {suggested}?" in refusal(line).next_step


@given(st.lists(st.text(st.characters(exclude_characters="\\'\x00"), min_size=1)))
def test_quoted_words_come_back_whole(words):
    assert split_line(" ".join(f"'{w}'" for w in words)) == words


@given(st.text())
def test_any_line_is_parsed_or_refused(line):
    try:
        options = parse(line)
    except UsageError:
        return
    assert options.reference


names = st.from_regex(r"[A-Z][A-Z0-9_]{0,3}", fullmatch=True)
sizes = st.dictionaries(names, st.integers(0, 2**40), min_size=1, max_size=4)


@given(st.lists(sizes, min_size=1, max_size=4))
def test_shapes_round_trip(wanted):
    text = ";".join(",".join(f"{k}={v}" for k, v in w.items()) for w in wanted)

    assert workloads(text) == tuple(wanted)
    assert parse(f"f --shapes {shlex.quote(text)}").shapes == tuple(wanted)


@given(st.text())
def test_any_shapes_text_is_read_or_refused(text):
    try:
        found = workloads(text)
    except argparse.ArgumentTypeError:
        return
    assert found
    assert all(size >= 0 for sizes in found for size in sizes.values())


@pytest.mark.parametrize(
    ("line", "advice"),
    [
        ("softmax(x)", '%%cuda_from softmax --inputs "x"'),
        ("np.linalg.norm(x, ord=2) --quiet", '%%cuda_from np.linalg.norm --inputs "x, ord=2"'),
        ("softmax()", "Write %%cuda_from softmax"),
        ("lambda x: 2 * x", "f = lambda"),
        ("softmax x", "--inputs"),
        ("softmax --inputs x, y", 'Quote the whole list: --inputs "x, y"'),
        ("", "There is no name of a reference"),
        ("softmax --device cpuu", "Did you mean cpu?"),
        ("softmax  # one row a block", "takes no comment"),
        ("softmax --replay nevr", "Did you mean never?"),
    ],
)
def test_what_people_write_for_a_reference(line, advice):
    assert advice in str(refusal(line))


def test_a_message_in_a_notebook_ends_its_lines_between_words():
    path = "/data/with/a/long/name/" + "folder/" * 14
    words = [f"word{i}" for i in range(60)]
    error = UsageError("Short.", received=f"x = 1\n    {path} 3", next_step=" ".join(words))
    (shown,) = error._render_traceback_()
    lines = shown.split("\n")

    assert lines[:3] == ["UsageError: Short.", "  received: x = 1", f"    {path}"]
    assert all(len(line) <= 96 for line in lines if path not in line)
    assert shown.split() == f"UsageError: {error}".split()
    assert {line[:4] for line in lines[5:]} == {"    "}
