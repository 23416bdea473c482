"""The user's own library: kept by example, found by behaviour, never by running stored code."""

from __future__ import annotations

import json
import logging

import numpy as np
import pytest

from llmkernel.library.probe import Probe
from llmkernel.library.user import add_to_user_library, extra_entries
from llmkernel.providers.library import LibraryProvider, NoLibraryMatchError
from tests.unit.library.problems import normal, problem_of, reply_of

SOURCE = """\
//! flip(x: float32[M, N]) -> y: float32[M, N]
//! flip_rows<<<M, 32>>>(x, y, N)
__global__ void flip_rows(const float* x, float* y, int N) {}
"""


def flip(x):
    return x[:, ::-1]


@pytest.fixture
def provider(tmp_path):
    class Kept(LibraryProvider):
        def extra_entries(self):
            return extra_entries(tmp_path)

    return Kept()


def test_a_kept_kernel_is_found_for_another_reference_that_does_the_same(tmp_path, provider):
    folder = add_to_user_library(
        problem_of(flip, normal(4, 9), intent="Reverse rows"), SOURCE, folder=tmp_path
    )

    def mirrored(image):
        return np.fliplr(image)

    reply = reply_of(problem_of(mirrored, normal(3, 5)), provider=provider)

    assert reply.details["library_entry"] == folder.name
    assert "//! mirrored(x: float32[M, N])" in reply.text
    assert "Reverse rows" in reply.text


@pytest.mark.parametrize(
    ("function", "inputs"),
    [
        (lambda x: x[::-1], (normal(4, 9),)),
        (lambda x: x[:, ::-1], (normal(4, 9, dtype=np.float64),)),
        (lambda x: x[:, ::-1] + 1e-3, (normal(4, 9),)),
        (lambda x: x[::-1], (normal(9),)),
    ],
)
def test_a_lookalike_finds_nothing(tmp_path, provider, function, inputs):
    add_to_user_library(problem_of(flip, normal(4, 9)), SOURCE, folder=tmp_path)

    with pytest.raises(NoLibraryMatchError):
        reply_of(problem_of(function, *inputs), provider=provider)


def test_an_own_kernel_comes_before_a_shipped_one(tmp_path, provider):
    def doubled(x, a):
        return a * x

    problem = problem_of(doubled, normal(9), 2.0)
    folder = add_to_user_library(problem, SOURCE, folder=tmp_path)

    assert [m.name for m in provider.matches(problem)][:2] == [folder.name, "affine"]


def test_an_entry_holds_no_code_but_the_kernel(tmp_path):
    folder = add_to_user_library(problem_of(flip, normal(4, 9)), SOURCE, folder=tmp_path)

    data = json.loads((folder / "entry.json").read_text(encoding="utf-8"))
    assert sorted(p.name for p in folder.iterdir()) == ["entry.json", "kernel.cu"]
    assert set(data) == {"version", "title", "signature", "keywords", "examples"}
    assert len(data["examples"]) >= 4
    assert (folder / "kernel.cu").read_text(encoding="utf-8") == SOURCE


def test_keeping_a_kernel_twice_keeps_it_once(tmp_path):
    for _ in range(2):
        add_to_user_library(problem_of(flip, normal(4, 9)), SOURCE, folder=tmp_path)

    assert len(extra_entries(tmp_path)) == 1


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"version": 99}',
        '{"version": 1, "title": "x", "keywords": [], "examples": [{"inputs": ["os"]}]}',
    ],
)
def test_an_entry_that_cannot_be_read_is_skipped_and_named(tmp_path, caplog, text):
    add_to_user_library(problem_of(flip, normal(4, 9)), SOURCE, folder=tmp_path)
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "kernel.cu").write_text(SOURCE, encoding="utf-8")
    (broken / "entry.json").write_text(text, encoding="utf-8")

    with caplog.at_level(logging.WARNING):
        entries = extra_entries(tmp_path)

    assert len(entries) == 1
    assert "broken" in caplog.text


def test_a_large_problem_keeps_small_examples(tmp_path):
    problem = problem_of(flip, np.zeros((3000, 1000), np.float32))

    (entry,) = extra_entries(add_to_user_library(problem, SOURCE, folder=tmp_path).parent)

    assert entry.match(Probe(problem), "") is not None
    assert all(i[0].size < 10_000 for i, _ in entry.examples)


def test_there_need_be_no_library(tmp_path):
    assert extra_entries(tmp_path / "none") == ()
