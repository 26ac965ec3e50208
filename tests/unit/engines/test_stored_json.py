from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from cognicraft.engines.stored_json import dump_chunk, dump_record, load_chunk, load_record
from cognicraft.records import Chunk, ContextualChunk, DocumentRecord, Page

anything = st.text(st.characters())  # lone surrogates and NUL too
scalars = st.one_of(st.booleans(), st.integers(), st.floats(allow_nan=False), anything)
metadata = st.dictionaries(anything, st.one_of(scalars, st.lists(scalars, max_size=3).map(tuple)), max_size=4)
records = st.builds(
    DocumentRecord,
    id=anything,
    source=anything,
    revision=anything,
    status=st.sampled_from(("ready", "failed")),
    title=anything,
    pages=st.lists(st.builds(Page, st.integers(1), st.integers(0), st.integers(0)), max_size=2).map(tuple),
    file_mtime_ns=st.integers(),
    metadata=metadata,
    warnings=st.lists(anything, max_size=2).map(tuple),
)
chunks = st.builds(
    ContextualChunk,
    st.builds(
        Chunk,
        anything,
        st.integers(0),
        st.integers(0),
        heading_path=st.lists(anything, max_size=3).map(tuple),
        occurrence=st.integers(0),
    ),
    dense_context=anything,
    lexical_context=anything,
)


def kinds(metadata: Any) -> dict[str, Any]:
    return {
        key: [type(one) for one in value] if isinstance(value, tuple) else type(value)
        for key, value in metadata.items()
    }


@given(record=records)
def test_a_record_comes_back_as_it_was_and_is_valid_unicode_in_between(record: DocumentRecord) -> None:
    text = dump_record(record)
    text.encode("utf-8")
    again = load_record(text)
    assert again == record
    assert kinds(again.metadata) == kinds(record.metadata)


@given(chunk=chunks)
def test_a_chunk_comes_back_as_it_was_and_is_valid_unicode_in_between(chunk: ContextualChunk) -> None:
    text = dump_chunk(chunk)
    text.encode("utf-8")
    assert load_chunk(text) == chunk
