"""Wrong kernels that a full verification accepts, so that nobody takes `passed` for a proof.

At inputs that show the mistake a quick check refuses them: a notebook's own inputs are always judged.
"""

from pathlib import Path

import numpy as np
import pytest

from llmkernel import evaluate

DIRECTORY = Path(__file__).resolve().parents[2] / "survivors"
FIBONACCI = [1, 1]
while FIBONACCI[-1] < 2**30:
    FIBONACCI.append(FIBONACCI[-1] + FIBONACCI[-2])
PEAK = np.full((2, 50000), -16.5, np.float32)
PEAK[:, 7] = 0.0
COUNT = np.arange(1, 41, dtype=np.float32)


def log_sum_exp(x):
    top = x.max(-1, keepdims=True)
    return np.log(np.exp(x - top).sum(-1)) + top[..., 0]


def year_of(days):
    return (days.astype("datetime64[D]").astype("datetime64[Y]").astype(np.int64) + 1970).astype(np.int32)


SURVIVORS = {
    "sleeper_after_20000_launches": (lambda a, x, y: a * x + y, [np.float32(2), COUNT, COUNT], None),
    "logsumexp_without_tail": (log_sum_exp, [COUNT.reshape(8, 5)], [PEAK]),
    "row_by_float_division": (lambda x, b: x + b[:, None], [COUNT.reshape(8, 5), COUNT[:8]], None),
    "gcd_of_36_divisions": (
        np.gcd,
        [np.arange(40, dtype=np.int32)] * 2,
        [np.array(FIBONACCI[40:44], np.int32), np.array(FIBONACCI[39:43], np.int32)],
    ),
    "gather_from_the_end": (
        lambda x, index: x[index],
        [COUNT, np.arange(8)],
        [COUNT, np.arange(-4, 4)],
    ),
    "year_without_centuries": (
        year_of,
        [np.arange(0, 22000, 99, dtype=np.int32)],
        [np.arange(47000, 48000, dtype=np.int32)],
    ),
}


def test_every_survivor_says_why_nothing_sees_it():
    assert {p.stem for p in DIRECTORY.glob("*.cu")} == set(SURVIVORS)
    for path in DIRECTORY.glob("*.cu"):
        assert path.read_text().startswith("// survivor: why="), path


@pytest.mark.parametrize("name", SURVIVORS)
def test_a_survivor_is_refused_only_where_its_mistake_shows(name):
    reference, harmless, showing = SURVIVORS[name]
    source = (DIRECTORY / f"{name}.cu").read_text()
    report = evaluate(source, reference, harmless, device="cpu", level="full")
    # Once a check sees it, it belongs to tests/rogues.
    assert report.outcome == "passed", report.headline
    if showing is not None:
        report = evaluate(source, reference, showing, device="cpu")
        assert report.outcome == "wrong_value", report.headline
