"""Mechanical mutants of a few honest kernels: all are caught but those that are explained."""

import pytest

from llmkernel.cli import gallery
from tests.rogues import mutate

CASES, PROBLEMS = gallery.load_gallery(gallery.default_directory(), "cpu")
EVERY = [m for c in CASES if c.is_honest for m in mutate.mutants(c)]


def test_every_operator_finds_its_place_and_changes_one_line():
    assert {m.operator for m in EVERY} == set(mutate.OPERATORS)
    original = {c.name: c.source.split("\n") for c in CASES}
    for mutant in EVERY:
        pairs = zip(mutant.source.split("\n"), original[mutant.kernel], strict=True)
        assert [n for n, (a, b) in enumerate(pairs, 1) if a != b] == [mutant.line]


def test_every_explained_mutant_is_one_that_is_made():
    made = {(m.kernel, m.operator, m.text) for m in EVERY}
    explained = mutate.unseen("cpu")
    assert explained.keys() <= made
    assert all(explained.values())


@pytest.mark.parametrize("kernel", ["honest_variance", "honest_stencil", "honest_cumprod"])
def test_mutants_are_caught(kernel):
    results = mutate.run("cpu", kernel, (0, 3), on_result=lambda _: None)
    assert results
    assert [r for r in results if r["outcome"] == "passed" and not r["reason"]] == []
