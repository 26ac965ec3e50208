"""JSON and JSON Lines: what becomes text, metadata, title and pointer, and what happens to broken input."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cognicraft.errors import CorruptFile, EmptyFile, FileTooLarge, UsageError
from cognicraft.ingest.read import read_file
from cognicraft.records import Document
from unit.ingest.reading import assert_sound, blocks_of, read_all, read_one, write

LONG = "BM25 ranks documents by the words that they share with the question. " * 4


def write_json(folder: Path, value: Any, name: str = "a.json") -> Path:
    return write(folder, name, json.dumps(value))


def at_pointer(value: Any, pointer: str) -> Any:
    for step in pointer.split("/")[1:]:
        step = step.replace("~1", "/").replace("~0", "~")
        value = value[int(step)] if isinstance(value, list) else value[step]
    return value


def test_an_object_is_one_document_with_labelled_lines(tmp_path: Path) -> None:
    document = read_one(write_json(tmp_path, {"title": "Ranking", "year": 1994, "author": {"name": "Ada"}, "on": True}))
    assert document.title == "Ranking"
    assert document.text == "Ranking\n\nyear: 1994\nauthor.name: Ada\non: true"
    assert document.blocks[0].kind == "heading"
    assert document.pointer == ""
    assert document.media_type == "application/json"


def test_long_texts_are_paragraphs_under_their_key_unless_it_says_nothing(tmp_path: Path) -> None:
    document = read_one(write_json(tmp_path, {"risk factors": LONG, "text": LONG.strip() + "\n\nEnd."}))
    assert [kind for kind, _ in blocks_of(document)] == ["heading", "paragraph", "paragraph", "paragraph"]
    assert blocks_of(document)[0][1] == "risk factors"
    assert document.text.endswith("End.")
    assert "text" not in [text for kind, text in blocks_of(document) if kind == "heading"]


def test_a_list_of_flat_objects_is_a_table_whose_rows_stand_alone(tmp_path: Path) -> None:
    rows = [{"quarter": "Q3 2022", "services": 19604}, {"quarter": "Q2 2022", "services": 19821, "note": None}]
    document = read_one(write_json(tmp_path, {"company": "Apple", "sales": rows}))
    assert blocks_of(document) == [
        ("list", "company: Apple"),
        ("heading", "sales"),
        ("table", "quarter: Q3 2022 | services: 19604\nquarter: Q2 2022 | services: 19821"),
    ]


def test_titled_elements_of_a_list_are_sections(tmp_path: Path) -> None:
    value = {"sections": [{"heading": "Risk", "text": LONG}, {"heading": "Outlook", "text": LONG}]}
    document = read_one(write_json(tmp_path, value))
    assert document.heading_path(len(document.text) - 1) == ("sections", "Outlook")


def test_numbers_and_lists_keep_their_labels(tmp_path: Path) -> None:
    document = read_one(write_json(tmp_path, {"metric": "sales", "content": 5, "tags": ["a", "b"], "on": [True, 1.5]}))
    assert document.text == "metric: sales\ncontent: 5\ntags: a, b\non: true, 1.5"


def test_identifiers_and_addresses_are_metadata_and_no_text(tmp_path: Path) -> None:
    value = {"_id": "d7", "url": "https://example.org/x", "body": "Short words.", "price": 1.5, "tags": ["a", "b"]}
    document = read_one(write_json(tmp_path, value))
    assert "example.org" not in document.text
    assert "d7" not in document.text
    assert document.metadata == {
        "_id": "d7", "url": "https://example.org/x", "price": 1.5, "tags": ("a", "b"),
    }  # fmt: skip
    assert type(document.metadata["price"]) is float


def test_embeddings_are_neither_text_nor_metadata(tmp_path: Path) -> None:
    document = read_one(write_json(tmp_path, {"text": "Words.", "scores": [0.5] * 384, "embedding": [0.25] * 384}))
    assert document.text == "Words."
    assert document.metadata == {}


def test_numbers_stay_as_they_are_written(tmp_path: Path) -> None:
    path = write(tmp_path, "a.json", '{"price": 1.10, "large": 123456789012345678901234567890, "small": 1e-7}')
    document = read_one(path)
    assert document.text == "price: 1.10\nlarge: 123456789012345678901234567890\nsmall: 1e-7"
    assert document.metadata == {"price": 1.1, "large": "123456789012345678901234567890", "small": 1e-7}


def test_every_value_in_the_text_can_be_cited_by_its_pointer(tmp_path: Path) -> None:
    value = {
        "title": "T", "a/b": {"c~d": "x y"}, "text": LONG, "rows": [{"k": 1, "m": "two"}, {"k": 3}],
        "list": ["one", "two"], "deep": [{"name": "N", "inner": [{"text": LONG + "!", "n": 5}]}],
    }  # fmt: skip
    document = read_one(write_json(tmp_path, value))
    assert len(document.pointers) == 11
    for start, end, pointer in document.pointers:
        assert document.text[start:end] == str(at_pointer(value, pointer)).strip()


def test_chosen_fields_are_the_text_in_their_order(tmp_path: Path) -> None:
    value = {"title": "T", "a": "first", "b": {"c": "second", "d": "no"}, "items": [{"q": "x"}, {"q": "y", "r": "z"}]}
    document = read_one(write_json(tmp_path, value), json_text=["/items/*/q", "c", "a"])
    assert document.text.split() == ["T", "items", "q:", "x", "q:", "y", "b.c:", "second", "a:", "first"]
    single = read_one(write_json(tmp_path, {"a": "first", "b": "second"}), json_text="a")
    assert single.text == "first"


def test_chosen_metadata_and_title(tmp_path: Path) -> None:
    value = {
        "title": "No",
        "head": {"line": "Yes"},
        "meta": {"year": 2022, "lang": "en"},
        "refs": [{"id": 1}, {"id": 2}],
    }
    document = read_one(
        write_json(tmp_path, value), json_title="/head/line", json_metadata=["meta", "/refs/*/id"], json_text=["title"]
    )
    assert document.title == "Yes"
    assert document.metadata == {"meta.year": 2022, "meta.lang": "en", "refs.id": (1, 2)}


def test_an_array_of_objects_is_many_documents(tmp_path: Path) -> None:
    documents = read_all(write_json(tmp_path, [{"name": "BM25", "text": "ranks"}, {"name": "MMR", "text": "spreads"}]))
    assert [(one.title, one.pointer) for one in documents] == [("BM25", "/0"), ("MMR", "/1")]
    assert documents[1].pointers[-1][2] == "/1/text"
    assert len({one.id for one in documents}) == 2


def test_an_array_of_texts_is_one_document(tmp_path: Path) -> None:
    document = read_one(write_json(tmp_path, ["one", "two", 3]))
    assert document.text == "one, two, 3"
    assert document.pointers[2][2] == "/2"


def test_json_lines_count_pointers_from_0_and_blank_lines_too(tmp_path: Path) -> None:
    documents = read_all(write(tmp_path, "a.jsonl", '\ufeff{"text": "a"}\r\n\r\n{"text": "b"}\n{"text": "c"}'))
    assert [(one.text, one.pointer) for one in documents] == [("a", "/0"), ("b", "/2"), ("c", "/3")]
    assert documents[0].media_type == "application/jsonl"


def test_json_lines_are_read_one_at_a_time(tmp_path: Path) -> None:
    path = write(tmp_path, "a.jsonl", '{"text": "a"}\n{"text": "b"}\n' + "broken\n" * 10)
    documents = read_file(str(path), {})
    assert next(documents).text == "a"


def test_a_broken_line_is_named_and_the_others_are_read(tmp_path: Path) -> None:
    path = write(tmp_path, "a.jsonl", b'{"text": "a"}\n{"text": \n{"text": "\xff"}\n{"text": "b"}\n{"id": null}\n')
    documents = read_all(path)
    assert [one.text for one in documents] == ["a", "b"]
    assert documents[0].warnings == ()
    broken, blank = documents[1].warnings
    assert "2 left out as broken: line 2: expecting value at column 10; line 3: not valid UTF-8" in broken
    assert "1 left out, without text: line 5" in blank


def test_many_broken_lines_are_counted_and_some_named(tmp_path: Path) -> None:
    document = read_one(write(tmp_path, "a.jsonl", '{"text": "a"}\n' + "{\n" * 500))
    assert "500 left out" in document.warnings[0]
    assert "and 480 more" in document.warnings[0]


def test_json_lines_in_a_json_file_and_json_in_a_lines_file_are_understood(tmp_path: Path) -> None:
    lines = read_all(write(tmp_path, "a.json", '{"text": "a"}\n{"text": "b"}\n'))
    assert [one.text for one in lines] == ["a", "b"]
    whole = read_all(write(tmp_path, "b.jsonl", json.dumps([{"text": "a"}, {"text": "b"}], indent=2)))
    assert [one.text for one in whole] == ["a", "b"]


def test_broken_json_is_named_with_line_and_column(tmp_path: Path) -> None:
    with pytest.raises(CorruptFile, match=r"a\.json is not valid JSON at line 2, column 7: expecting value"):
        read_one(write(tmp_path, "a.json", '{"a": 1,\n "b": }'))
    with pytest.raises(CorruptFile, match="no line or element that can be read: line 1"):
        read_one(write(tmp_path, "a.jsonl", '{"a": \n{"b"'))
    with pytest.raises(CorruptFile, match="looks like HTML"):
        read_one(write(tmp_path, "a.json", "<!DOCTYPE html><p>Not found</p>"))


@pytest.mark.parametrize("opening", ["[", '{"a":', '[{"a":'])
@pytest.mark.parametrize("name", ["a.json", "a.jsonl"])
def test_deep_nesting_is_refused(tmp_path: Path, opening: str, name: str) -> None:
    with pytest.raises(CorruptFile, match=r"nested more than 100 levels|expecting"):
        read_one(write(tmp_path, name, opening * 100_000))
    closed = "[" * 101 + '"x"' + "]" * 101
    with pytest.raises(CorruptFile, match="nested more than 100 levels"):
        read_one(write(tmp_path, "b.json", closed))


def test_nesting_within_the_bound_is_read(tmp_path: Path) -> None:
    value: Any = {"text": LONG}
    for _ in range(90):
        value = {"k": value}
    assert LONG.strip() in read_one(write_json(tmp_path, value)).text


def test_repeated_keys_are_named_and_the_last_counts(tmp_path: Path) -> None:
    document = read_one(write(tmp_path, "a.json", '{"text": "old", "text": "new"}'))
    assert document.text == "new"
    assert "occurs twice" in document.warnings[0]


def test_values_that_are_not_json_are_no_text(tmp_path: Path) -> None:
    document = read_one(write(tmp_path, "a.json", '{"text": "words", "x": NaN, "y": -Infinity, "z": 1e999}'))
    assert document.text == "words\n\nz: 1e999"
    assert document.metadata == {}


def test_escapes_that_no_text_can_hold_are_cleaned(tmp_path: Path) -> None:
    document = read_one(write(tmp_path, "a.json", r'{"text": "a\u0000b\ud800c\r\nd", "k\u0000": "\udfff"}'))
    assert document.text.startswith("ab\ufffdc\nd")


@pytest.mark.parametrize("content", ["{}", "[]", "null", '{"a": null, "b": ""}', "[{}, {}]"])
def test_json_without_text_is_empty(tmp_path: Path, content: str) -> None:
    with pytest.raises(EmptyFile, match=r"a\.json"):
        read_one(write(tmp_path, "a.json", content))


def test_limits(tmp_path: Path) -> None:
    with pytest.raises(FileTooLarge):
        read_one(write_json(tmp_path, {"text": LONG}), max_file_mb=0.0001)
    with pytest.raises(FileTooLarge, match="characters"):
        read_one(write_json(tmp_path, {"text": LONG}), max_characters=100)


def test_field_options_of_the_wrong_kind_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="json_text"):
        read_one(write_json(tmp_path, {"text": "a"}), json_text=[1])


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=200),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=25,
)


@given(JSON_VALUES)
@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_json_gives_sound_documents(tmp_path: Path, value: Any) -> None:
    path = write_json(tmp_path, value)
    try:
        documents: list[Document] = list(read_file(str(path), {}))
    except EmptyFile:
        return
    for document in documents:
        assert_sound(document)
        spans = sorted(document.pointers)
        assert all(before[1] <= after[0] for before, after in pairwise(spans))
