from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmkernel.records.names import safe_folder_name


@given(st.text())
def test_every_name_is_safe_on_every_file_system(name):
    folder = safe_folder_name(name)

    assert re.fullmatch(r"[a-z0-9_-]{1,64}", folder)
    assert folder.split("-")[0] not in {"con", "prn", "aux", "nul", "com1", "lpt9"} or "-" in folder


@given(st.lists(st.text(alphabet="abAB_./\\\u00e9e\u0301 \u0430", max_size=6), unique=True, max_size=8))
def test_different_names_never_share_a_folder(names):
    import unicodedata

    distinct = {unicodedata.normalize("NFC", name) for name in names}

    assert len({safe_folder_name(name) for name in distinct}) == len(distinct)


@pytest.mark.parametrize("name", ["softmax", "_private", "top_k2"])
def test_plain_names_are_kept(name):
    assert safe_folder_name(name) == name


@pytest.mark.parametrize(
    "name", ["con", "nul", "com1", "..", ".", "", "a/b", "a\\b", "C:", "Softmax", "a.", "x" * 300, "\ud800"]
)
def test_unsafe_names_are_replaced(name):
    assert safe_folder_name(name) != name


def test_upper_case_does_not_collide_where_case_is_ignored():
    assert safe_folder_name("Softmax").casefold() != safe_folder_name("softmax").casefold()
