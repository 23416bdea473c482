from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmkernel.errors import RecordError
from llmkernel.records.record import MIME_TYPE, Record, normalize_source, record_key, source_digest

from .strategies import SOURCE, json_values, make_record, records


@given(records)
def test_a_record_survives_its_json(record):
    assert Record.from_json(record.to_json()) == record
    assert Record.from_json(record.to_json().encode()).key == record.key


def test_report_and_domain_are_rebuilt():
    record = make_record()

    assert record.read_report().to_dict() == record.report
    assert record.read_report().timing.is_emulation
    assert record.read_domain().to_dict() == {
        **record.domain,
        "arguments": tuple(record.domain["arguments"]),
    }


def test_json_is_made_for_diffs():
    text = make_record(intent="größer\n").to_json()

    assert text.endswith("}\n")
    assert "\r" not in text
    assert "größer" in text
    assert list(json.loads(text)) == sorted(json.loads(text))


def test_unknown_fields_are_ignored():
    data = json.loads(make_record().to_json())
    data["colour"] = "blue"
    data["problem"]["mood"] = [1]
    data["report"]["future"] = {}
    data["report"]["checks"][0]["future"] = 1
    data["domain"]["future"] = 1

    record = Record.from_dict(data)

    assert record.key == make_record().key
    assert record.read_report().outcome == "passed"
    assert record.read_domain().device == "cpu"


@given(st.binary(max_size=200))
def test_arbitrary_bytes_are_refused_with_a_record_error(content):
    with pytest.raises(RecordError):
        Record.from_json(content)


@given(json_values)
def test_arbitrary_json_is_refused_with_a_record_error(value):
    with pytest.raises(RecordError):
        Record.from_json(json.dumps(value))


def _paths(value, prefix=()):
    yield prefix
    if isinstance(value, dict):
        for name, item in value.items():
            yield from _paths(item, (*prefix, name))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _paths(item, (*prefix, index))


@given(st.data())
def test_a_record_with_one_value_replaced_is_read_or_refused_never_anything_else(data):
    output = json.loads(json.dumps(make_record().to_output(SOURCE)))
    path = data.draw(st.sampled_from([p for p in _paths(output) if p]))
    changed = copy.deepcopy(output)
    place = changed
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = data.draw(json_values)

    try:
        record, source = Record.from_output(changed)
        record.read_report()
        record.read_domain()
    except RecordError:
        return

    assert source_digest(source) == record.candidate_digest
    assert record.to_json()


@pytest.mark.parametrize(
    "content",
    [
        b'{"schema": NaN}',
        b"[" * 100_000,
        b'{"a":' * 200 + b"1" + b"}" * 200,
        b"\xff\xfe",
        b"1" * 10_000,
        b'{"schema": 1e999}',
    ],
)
def test_hostile_json_is_refused(content):
    with pytest.raises(RecordError):
        Record.from_json(content)


def test_another_schema_is_named():
    data = {**make_record().to_dict(), "schema": "llmkernel-record/9"}

    with pytest.raises(RecordError, match="llmkernel-record/9"):
        Record.from_dict(data)


def test_a_key_that_does_not_belong_to_the_problem_is_refused():
    data = json.loads(make_record().to_json())
    data["problem"]["intent"] += " And print my home directory."

    with pytest.raises(RecordError, match="key does not belong"):
        Record.from_dict(data)


def test_an_output_whose_source_was_exchanged_is_refused():
    output = make_record().to_output(SOURCE)
    output["source"] += "// one more line\n"

    with pytest.raises(RecordError, match="not the one that the record names"):
        Record.from_output(output)


def test_every_part_of_the_problem_is_in_the_key():
    keys = {
        record_key("a", "b", "c", 1),
        record_key("x", "b", "c", 1),
        record_key("a", "b ", "c", 1),
        record_key("a", "b", "x", 1),
        record_key("a", "b", "c", 2),
        record_key("ab", "", "c", 1),
    }

    assert len(keys) == 6


def test_the_key_is_the_same_in_every_process():
    assert record_key("f", "Zeilenweise Σ", "s(x: T[N]) -> y: T[N]", 1) == (
        "89b2d903108242efce731ae548996aac79536b20cc78888accaa3c50ae358430"
    )


def test_line_ends_are_not_an_edit():
    assert source_digest("a\r\nb\r\n") == source_digest("\ufeffa\nb\n")
    assert source_digest("a\nb") != source_digest("a\nb\n")
    assert normalize_source("a\rb") == "a\nb"


def test_every_field_is_in_the_reference():
    page = (Path(__file__).parents[3] / "docs" / "reference" / "records.md").read_text(encoding="utf-8")
    data = make_record().to_dict()

    fields = {*data, *data["problem"], *data["candidate"]}
    assert {name for name in fields if f"`{name}`" not in page} == set()
    assert f"`{MIME_TYPE}`" in page


def test_the_digest_covers_the_whole_record():
    record = make_record()

    assert record.digest == Record.from_json(record.to_json()).digest
    assert record.digest != make_record(environment={}).digest
    assert record.digest != make_record(domain={}).digest
