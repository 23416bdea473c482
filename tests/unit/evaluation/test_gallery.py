"""The judge, scored: every rogue of the gallery gets its outcome and every honest kernel passes, on the `cpu` device.

`llmkernel verify --gallery --device cuda` asks the same of a GPU.
"""

from __future__ import annotations

import json
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmkernel.cli import gallery
from llmkernel.cli.main import main
from llmkernel.errors import UsageError

DIRECTORY = gallery.default_directory()
CASES, PROBLEMS = gallery.load_gallery(DIRECTORY, "cpu")
RUN = [c for c in CASES if not c.skipped]


# How a race, or state that is kept, shows depends on how busy the machine is; that it shows does not.
TIMED_KINDS = {
    "atomics",
    "determinism",
    "fences",
    "scratch",
    "shared",
    "state",
    "synchronization",
    "uninitialised",
    "warp",
}
FACES_OF_A_RACE = {
    "data_race",
    "invalid_synchronization",
    "non_deterministic",
    "non_finite",
    "not_written",
    "uninitialised_read",
    "wrong_value",
}


def expected(case):
    is_timed = case.kind in TIMED_KINDS and FACES_OF_A_RACE & set(case.outcomes) and not case.is_honest
    return set(case.outcomes) | (FACES_OF_A_RACE if is_timed else set())


@pytest.mark.parametrize("case", RUN, ids=[c.name for c in RUN])
def test_the_verdict_is_the_one_that_the_note_names(case):
    result = gallery.judge_case(case, PROBLEMS, "cpu")
    assert result.outcome in expected(case), result.headline


def test_the_gallery_is_large_and_broad():
    rogues = [c for c in CASES if not c.is_honest]
    assert len(rogues) >= 100
    assert len(CASES) - len(rogues) >= 60
    assert min(Counter(c.kind for c in rogues).values()) >= 1
    assert len({c.kind for c in rogues}) >= 15
    sources = Counter(c.source.partition("\n")[2] for c in CASES)
    assert max(sources.values()) == 1, "two cases are the same kernel"


def test_outcomes_are_not_widened_until_they_say_nothing():
    for case in CASES:
        assert len(case.outcomes) <= 5, case.name
        assert "inconclusive" not in case.outcomes or case.is_honest, case.name


NOTE = "// rogue: problem=axpy; kind=constant; outcome=wrong_value; why=zeros"


def write(tmp_path, note=NOTE, name="zeros"):
    source = (DIRECTORY / "zeros.cu").read_text().partition("\n")[2]
    (tmp_path / f"{name}.cu").write_text(f"{note}\n{source}")
    (tmp_path / "problems.py").write_text((DIRECTORY / "problems.py").read_text())
    return tmp_path / f"{name}.cu"


def test_devices_may_differ_in_what_they_can_tell(tmp_path):
    path = write(
        tmp_path, "// rogue: problem=axpy; kind=race; outcome=wrong_value; cpu=data_race|wrong_value; why=x"
    )
    assert gallery.read_case(path, "cpu").outcomes == {"data_race", "wrong_value"}
    assert gallery.read_case(path, "cuda").outcomes == {"wrong_value"}
    path = write(tmp_path, NOTE.replace("; why", "; device=cuda; why"))
    assert gallery.read_case(path, "cpu").skipped == "cuda only"
    assert not gallery.read_case(path, "cuda").skipped
    path = write(tmp_path, NOTE.replace("; why", "; needs=memcheck; why"))
    assert gallery.read_case(path, "cpu").skipped == "needs memcheck"
    assert gallery.read_case(path, "cuda").tools == ("memcheck",)
    path = write(tmp_path, NOTE.replace("; why", "; needs=memcheck; cpu=out_of_bounds; why"))
    assert not gallery.read_case(path, "cpu").skipped


def test_a_case_may_need_checked_mode_on_the_cpu_device(tmp_path):
    path = write(tmp_path, NOTE.replace("; why", "; needs=memcheck|racecheck; cpu-needs=racecheck; why"))
    assert gallery.read_case(path, "cpu").tools == ("racecheck",)
    assert gallery.read_case(path, "cuda").tools == ("memcheck", "racecheck")
    path = write(tmp_path, NOTE.replace("; why", "; needs=memcheck; why"))
    assert not gallery.read_case(path, "cpu", ("memcheck", "racecheck")).skipped
    assert gallery.read_case(path, "cpu", ("racecheck",)).skipped == "needs memcheck"


@pytest.mark.parametrize(
    "note",
    [
        "// nothing",
        "// rogue: problem=axpy; kind=constant; outcome=passed; why=a rogue that may pass",
        "// rogue: problem=axpy; kind=constant; outcome=wrong; why=no such outcome",
        "// rogue: problem=axpy; kind=constant; why=no outcome",
        "// honest: problem=axpy; why=no kind",
        "// rogue: problem=axpy; kind=constant; outcome=wrong_value; needs=luck; why=no such tool",
        "// rogue: problem=axpy; kind=constant; outcome=wrong_value; cpu-needs=luck; why=no such tool",
        "// honest: problem=axpy; kind=rows; colour=red; why=an unknown key",
    ],
)
def test_a_note_that_cannot_be_understood_is_an_error(tmp_path, note):
    with pytest.raises(UsageError, match="no note"):
        gallery.read_case(write(tmp_path, note), "cpu")


@given(st.text(st.characters(exclude_characters="\x00\r\n", exclude_categories=["Cs"]), max_size=80))
def test_any_first_line_is_a_note_or_an_error(tmp_path_factory, text):
    path = tmp_path_factory.getbasetemp() / "fuzzed.cu"
    path.write_text(f"// rogue: {text}\n", encoding="utf-8")
    try:
        case = gallery.read_case(path, "cpu")
    except UsageError:
        return
    assert case.outcomes
    assert "passed" not in case.outcomes


def test_the_command_prints_the_score_and_fails_where_a_verdict_is_another(tmp_path, capsys):
    write(tmp_path)
    write(tmp_path, NOTE.replace("wrong_value", "data_race"), "mislabelled")
    write(tmp_path, "// honest: problem=axpy; kind=constant; why=zeros are not honest", "alarm")
    out = tmp_path / "score.json"
    words = ["verify", "--gallery", str(tmp_path), "--device", "cpu"]
    assert main([*words, "--json", str(out)]) == 1
    text = capsys.readouterr().out
    assert "2 of 2 rogues caught, 1 with the right outcome; 1 false alarms among 1 honest kernels" in text
    assert "wrong outcome: mislabelled" in text
    assert "false alarm: alarm" in text
    assert json.loads(out.read_text())["caught"] == 2
    assert main([*words, "--only", "zeros"]) == 0


def test_a_folder_without_a_gallery_is_named(tmp_path, capsys):
    assert main(["verify", "--gallery", str(tmp_path), "--device", "cpu"]) == 1
    assert "holds no gallery" in capsys.readouterr().err
    assert main(["verify", "--gallery", "--only", "no such word", "--device", "cpu"]) == 1
    assert "no such word" in capsys.readouterr().err


def test_verify_without_a_file_or_a_gallery_says_what_is_missing(capsys):
    assert main(["verify"]) == 1
    assert "nothing to verify" in capsys.readouterr().err
