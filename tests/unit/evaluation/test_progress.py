"""What is told of a timing while it runs."""

from __future__ import annotations

from llmkernel.evaluation.statistics import measurement
from llmkernel.evaluation.timing import PROGRESS_SECONDS, Progress


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_rows_are_told_a_few_times_a_second_the_kernel_first():
    clock, told = Clock(), []
    progress = Progress(told.append, clock)
    mine, theirs = [], []
    for _ in range(1000):
        clock.now += 0.004
        mine += [1.0, 3.0]
        theirs += [4.0]
        progress(mine, "eager", theirs)

    assert len(told) in range(int(4 / PROGRESS_SECONDS) - 1, int(4 / PROGRESS_SECONDS) + 2)
    assert [(r.label, r.median_ms) for r in told[-1]] == [("this kernel", 2.0), ("eager", 4.0)]
    assert [row.samples for row in told[0]] == [2, 1]


def test_a_baseline_that_is_done_stays_between_the_kernel_and_the_next():
    clock, told = Clock(), []
    progress = Progress(told.append, clock)
    progress.finish(measurement("eager", [4.0, 5.0]))
    progress([1.0], "compiled", [2.0])
    clock.now += 1
    progress([1.0])

    assert [[r.label for r in rows] for rows in told] == [
        ["this kernel", "eager", "compiled"],
        ["this kernel", "eager"],
    ]


def test_nothing_is_computed_where_nobody_listens():
    Progress(None)([], "", [])
