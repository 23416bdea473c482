from __future__ import annotations

import json

import nbformat
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmkernel.errors import RecordError
from llmkernel.records.ledger import VerifiedLedger
from llmkernel.records.notebook import find_in_notebook, records_in_notebook, restore_from_notebook
from llmkernel.records.record import MIME_TYPE, Record
from llmkernel.records.store import RecordStore

from .strategies import SOURCE, json_values, make_record


def notebook_with(*outputs):
    cells = [nbformat.v4.new_markdown_cell("# A record below"), nbformat.v4.new_code_cell("1 + 1")]
    for data in outputs:
        output = nbformat.v4.new_output("display_data", data={"text/plain": "passed", MIME_TYPE: data})
        cells.append(nbformat.v4.new_code_cell("%%cuda_from double_it", outputs=[output]))
    return nbformat.v4.new_notebook(cells=cells)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a notebook.ipynb"


def test_a_single_notebook_restores_the_folder(path, tmp_path):
    record = make_record()
    nbformat.write(notebook_with(record.to_output(SOURCE)), path)
    store = RecordStore(tmp_path / "kernels", ledger=VerifiedLedger(tmp_path / "ledger"))

    restored = restore_from_notebook(path, record.key, store)

    assert store.find(record.key) == restored
    assert restored.record == record
    assert restored.source == SOURCE
    assert store.reason_to_verify(restored, record.environment) is not None
    assert restore_from_notebook(path, "0" * 64, store) is None


def test_the_newest_of_several_is_taken(path):
    old = make_record(created="2026-01-01T00:00:00+00:00")
    new_source = SOURCE + "// faster\n"
    new = make_record(new_source, created="2026-02-01T00:00:00+00:00")
    nbformat.write(notebook_with(new.to_output(new_source), old.to_output(SOURCE)), path)

    assert find_in_notebook(path, old.key) == (new, new_source)


def test_a_malformed_output_hides_no_other(path):
    broken = make_record().to_output(SOURCE)
    broken["source"] = "exchanged"
    nan = make_record().to_output(SOURCE)
    nan["environment"] = {"x": float("nan")}
    nbformat.write(notebook_with({"schema": 3}, broken, nan, make_record().to_output(SOURCE)), path)

    assert records_in_notebook(path) == [(make_record(), SOURCE)]


@pytest.mark.parametrize("content", ["{", "[" * 100_000, '{"cells": "vnd"}', "\x00"])
def test_what_is_no_notebook_is_refused(path, content):
    path.write_text(content + f' "{MIME_TYPE}"')

    with pytest.raises(RecordError, match="not JSON"):
        records_in_notebook(path)


def test_a_missing_notebook_is_a_record_error(path):
    with pytest.raises(RecordError, match="Save the notebook"):
        records_in_notebook(path)


def test_a_notebook_without_records_is_not_even_parsed(path):
    path.write_text("{ this is not JSON")

    assert records_in_notebook(path) == []


@given(
    st.recursive(
        json_values,
        lambda inner: st.fixed_dictionaries(
            {},
            optional={
                name: inner | st.lists(inner, max_size=3)
                for name in ("cells", "worksheets", "outputs", "data", MIME_TYPE)
            },
        ),
        max_leaves=10,
    )
)
def test_notebooks_of_any_shape_hold_no_record(tmp_path_factory, value):
    path = tmp_path_factory.getbasetemp() / "any.ipynb"
    path.write_text(json.dumps([MIME_TYPE, value, {"cells": value}]), encoding="utf-8")
    assert records_in_notebook(path) == []

    path.write_text(json.dumps({MIME_TYPE: 1, "cells": value}), encoding="utf-8")
    assert records_in_notebook(path) == []


def test_a_record_survives_the_trip_through_an_old_notebook_format(path):
    output = {"output_type": "display_data", "data": {MIME_TYPE: make_record().to_output(SOURCE)}}
    path.write_text(json.dumps({"worksheets": [{"cells": [{"outputs": [output]}]}]}))

    [(record, _)] = records_in_notebook(path)
    assert isinstance(record, Record)
