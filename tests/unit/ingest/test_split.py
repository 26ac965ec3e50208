"""The structure splitter: what it keeps together, where it cuts, and what holds for every document."""

from __future__ import annotations

import time
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cognicraft.config import IngestSettings
from cognicraft.errors import UsageError
from cognicraft.ingest.sentences import sentences
from cognicraft.ingest.split import StructureSplitter
from cognicraft.models.minilm import MiniLM
from cognicraft.protocols import TokenOffsets
from cognicraft.records import Block, BlockKind, Chunk, Document, Page

CORPORA = Path(__file__).parents[3] / "../shared/data/chunking_eval/corpora"


@pytest.fixture(scope="module")
def offsets() -> TokenOffsets:
    return MiniLM(threads=1).token_offsets


def document_of(*parts: tuple[BlockKind, str, int]) -> Document:
    """Blocks with one blank line between them."""
    text, blocks = "", []
    for kind, content, level in parts:
        blocks.append(Block(kind=kind, start=len(text), end=len(text) + len(content), level=level))
        text += content + "\n\n"
    return Document(source="made.md", text=text, blocks=tuple(blocks))


def paragraph(sentence_count: int, word: str = "water") -> str:
    return " ".join(f"The {word} number {number} runs down." for number in range(sentence_count))


def test_a_small_document_is_one_chunk_with_everything_in_it(offsets: TokenOffsets) -> None:
    document = document_of(("heading", "Rivers", 1), ("paragraph", "They flow.", 0))
    (chunk,) = StructureSplitter()(document, offsets=offsets)
    assert chunk == Chunk(text="Rivers\n\nThey flow.", start=0, end=18, heading_path=("Rivers",), tokens=4)


def test_a_blank_document_gives_no_chunk(offsets: TokenOffsets) -> None:
    for text in ("", " \n\t \u3000"):
        assert StructureSplitter()(Document(source="x", text=text), offsets=offsets) == []


def test_a_heading_stays_with_what_follows_it(offsets: TokenOffsets) -> None:
    document = document_of(
        ("heading", "Rivers", 1),
        ("paragraph", paragraph(7), 0),
        ("heading", "Lakes", 1),
        ("paragraph", paragraph(7), 0),
    )
    chunks = StructureSplitter(max_tokens=64, overlap_tokens=0)(document, offsets=offsets)
    assert [chunk.text.split("\n")[0] for chunk in chunks] == ["Rivers", "Lakes"]
    assert [chunk.heading_path for chunk in chunks] == [("Rivers",), ("Lakes",)]


def test_a_top_section_begins_a_chunk_where_the_one_before_is_a_third_full(offsets: TokenOffsets) -> None:
    sections = [("heading", f"Part {number}", 1) for number in range(4)]
    parts = [part for heading in sections for part in (heading, ("paragraph", paragraph(5), 0))]
    chunks = StructureSplitter(max_tokens=100, overlap_tokens=0)(document_of(*parts), offsets=offsets)  # type: ignore[arg-type]
    assert [chunk.text.split("\n")[0] for chunk in chunks] == ["Part 0", "Part 1", "Part 2", "Part 3"]


def test_tiny_sections_share_a_chunk(offsets: TokenOffsets) -> None:
    parts = [part for number in range(6) for part in (("heading", f"Part {number}", 1), ("paragraph", "Yes.", 0))]
    assert len(StructureSplitter(max_tokens=100, overlap_tokens=0)(document_of(*parts), offsets=offsets)) == 1  # type: ignore[arg-type]


def test_a_long_paragraph_is_cut_between_sentences_into_even_chunks(offsets: TokenOffsets) -> None:
    text = paragraph(40)
    chunks = StructureSplitter(max_tokens=100, overlap_tokens=0)(Document(source="x", text=text), offsets=offsets)
    ends = {end for _, end in sentences(text)}
    assert all(chunk.end in ends for chunk in chunks)
    assert min(chunk.tokens for chunk in chunks) >= 60


def test_a_table_is_cut_between_its_rows(offsets: TokenOffsets) -> None:
    rows = [f"Sales of product {number} | 2021: {number * 7}. Units | 2020: 5" for number in range(30)]
    document = document_of(("table", "\n".join(rows), 0))
    chunks = StructureSplitter(max_tokens=60, overlap_tokens=0)(document, offsets=offsets)
    assert len(chunks) > 5
    assert [row for chunk in chunks for row in chunk.text.split("\n")] == rows


def test_code_is_cut_at_blank_lines_rather_than_inside_a_function(offsets: TokenOffsets) -> None:
    functions = [f"def name{number}(x):\n    y = x + {number}\n    return y" for number in range(8)]
    document = document_of(("code", "\n\n".join(functions), 0))
    chunks = StructureSplitter(max_tokens=50, overlap_tokens=0)(document, offsets=offsets)
    assert len(chunks) > 2
    assert all(chunk.text.startswith("def") for chunk in chunks)


def test_a_sentence_over_the_budget_is_cut_between_words(offsets: TokenOffsets) -> None:
    text = "river " * 100
    chunks = StructureSplitter(max_tokens=30, overlap_tokens=0)(Document(source="x", text=text), offsets=offsets)
    assert {word for chunk in chunks for word in chunk.text.split()} == {"river"}
    assert max(chunk.tokens for chunk in chunks) <= 30


def test_a_word_that_the_encoder_gives_up_on_is_still_cut(offsets: TokenOffsets) -> None:
    text = "QmFzZTY0" * 2000
    chunks = StructureSplitter(max_tokens=100, overlap_tokens=0)(Document(source="x", text=text), offsets=offsets)
    assert "".join(chunk.text for chunk in chunks) == text
    assert max(len(offsets(chunk.text[:64])) for chunk in chunks) > 1
    assert max(len(chunk.text) for chunk in chunks) < 1000


def test_overlap_is_whole_sentences_within_the_budget_and_ends_at_a_heading(offsets: TokenOffsets) -> None:
    document = document_of(
        ("heading", "Rivers", 1),
        ("paragraph", paragraph(30), 0),
        ("heading", "Lakes", 1),
        ("paragraph", paragraph(30), 0),
    )
    chunks = StructureSplitter(max_tokens=80, overlap_tokens=20)(document, offsets=offsets)
    starts = {start for start, _ in sentences(document.text)}
    overlaps = []
    for before, chunk in pairwise(chunks):
        assert chunk.start in starts
        shared = document.text[chunk.start : before.end]
        overlaps.append(len(offsets(shared)))
        if chunk.text.startswith("Lakes"):
            assert shared == ""
    assert max(overlaps) <= 20
    assert sum(overlap > 0 for overlap in overlaps) == len(overlaps) - 1


def test_the_defaults_are_those_of_the_settings() -> None:
    splitter, settings = StructureSplitter(), IngestSettings()
    assert (splitter.max_tokens, splitter.overlap_tokens) == (settings.chunk_tokens, settings.overlap_tokens)


def test_pages_are_those_that_the_chunk_touches(offsets: TokenOffsets) -> None:
    text = "One is here. Two is here. Three is here. "
    pages = (Page(number=1, start=0, end=13), Page(number=2, start=13, end=26), Page(number=3, start=26, end=41))
    document = Document(source="x.pdf", text=text, pages=pages)
    whole = StructureSplitter(max_tokens=50, overlap_tokens=0)(document, offsets=offsets)
    apart = StructureSplitter(max_tokens=4, overlap_tokens=0)(document, offsets=offsets)
    assert [(chunk.page, chunk.page_end) for chunk in whole] == [(1, 3)]
    assert [(chunk.page, chunk.page_end) for chunk in apart] == [(1, 1), (2, 2), (3, 3)]


def test_equal_texts_are_counted_apart(offsets: TokenOffsets) -> None:
    text = "\n\n".join(["Same text again and again."] * 3)
    chunks = StructureSplitter(max_tokens=6, overlap_tokens=0)(Document(source="x", text=text), offsets=offsets)
    assert [chunk.occurrence for chunk in chunks] == [0, 1, 2]


@pytest.mark.parametrize("sizes", [(0, 0), (100, 51), (100, -1)])
def test_sizes_that_cannot_be_meant_are_refused_with_a_remedy(sizes: tuple[int, int]) -> None:
    with pytest.raises(UsageError) as refused:
        StructureSplitter(max_tokens=sizes[0], overlap_tokens=sizes[1])
    assert "tokens" in refused.value.message
    assert refused.value.remedy


# ── what holds for every document ─────────────────────────────────────────────────────────────────────────────

contents = st.text(
    alphabet=st.sampled_from("ab. A1| \n漢é\u200b\x01") | st.characters(codec="utf-8"), max_size=80
) | st.lists(st.sampled_from(["The river runs.", "Sales | 2021: 5", "def f(x):", "- item", "word"]), max_size=12).map(
    "\n".join
)


@st.composite
def documents(draw: st.DrawFn) -> Document:
    """Blocks of any kind in order, text between them that no block claims, and pages that tile the text."""
    text, blocks = "", []
    for _ in range(draw(st.integers(0, 6))):
        kind = draw(st.sampled_from(["heading", "paragraph", "list", "table", "code", "unclaimed"]))
        content = draw(contents)
        if kind != "unclaimed":
            level = draw(st.integers(1, 3)) if kind == "heading" else 0
            blocks.append(Block(kind=kind, start=len(text), end=len(text) + len(content), level=level))
        text += content + draw(st.sampled_from(["\n\n", "\n", " ", ""]))
    cuts = sorted(draw(st.sets(st.integers(1, max(len(text) - 1, 1)), max_size=4))) if len(text) > 1 else []
    edges = [0, *cuts, len(text)]
    pages = tuple(
        Page(number=number, start=start, end=end) for number, (start, end) in enumerate(pairwise(edges), start=1)
    )
    return Document(source="x", text=text, blocks=tuple(blocks), pages=draw(st.sampled_from([(), pages])))


def byte_offsets(text: str) -> list[tuple[int, int]]:
    """A byte-level tokenizer: a character of several bytes has several tokens; control characters have none."""
    return [
        (index, index + 1)
        for index, character in enumerate(text)
        if character > "\x1f"
        for _ in character.encode("utf-8")
    ]


def check(
    document: Document, chunks: list[Chunk], *, max_tokens: int, overlap_tokens: int, tokenize: TokenOffsets
) -> None:
    text = document.text
    starts = [start for start, _ in tokenize(text)]
    seen: Counter[str] = Counter()
    covered = 0
    for before, chunk in zip([None, *chunks], chunks, strict=False):
        assert text[chunk.start : chunk.end] == chunk.text == chunk.text.strip() != ""
        assert text[covered : max(chunk.start, covered)].strip() == ""
        if before is not None:
            assert chunk.start > before.start
            assert chunk.end > before.end
            assert sum(chunk.start <= start < before.end for start in starts) <= overlap_tokens
        covered = chunk.end
        assert chunk.tokens == sum(chunk.start <= start < chunk.end for start in starts)
        # One character may have more tokens than there is room for; nothing else may be over the budget.
        inside = {start for start in starts if chunk.start <= start < chunk.end}
        assert chunk.tokens <= max_tokens or len(inside) == 1
        assert chunk.heading_path == document.heading_path(chunk.start)
        touched = [page.number for page in document.pages if page.start < chunk.end and page.end > chunk.start]
        assert (chunk.page, chunk.page_end) == ((touched[0], touched[-1]) if touched else (0, 0))
        assert chunk.occurrence == seen[chunk.text]
        seen[chunk.text] += 1
    assert text[covered:].strip() == ""


@settings(deadline=None)
@given(documents(), st.integers(1, 40), st.integers(0, 20))
def test_chunks_are_exact_bounded_in_order_and_cover_the_document(
    offsets: TokenOffsets, document: Document, max_tokens: int, overlap_tokens: int
) -> None:
    overlap_tokens = min(overlap_tokens, max_tokens // 2)
    splitter = StructureSplitter(max_tokens=max_tokens, overlap_tokens=overlap_tokens)
    chunks = splitter(document, offsets=offsets)
    check(document, chunks, max_tokens=max_tokens, overlap_tokens=overlap_tokens, tokenize=offsets)


@settings(deadline=None)
@given(documents(), st.integers(1, 12))
def test_the_same_holds_for_a_tokenizer_of_bytes(document: Document, max_tokens: int) -> None:
    chunks = StructureSplitter(max_tokens=max_tokens, overlap_tokens=0)(document, offsets=byte_offsets)
    check(document, chunks, max_tokens=max_tokens, overlap_tokens=0, tokenize=byte_offsets)


@pytest.mark.skipif(not CORPORA.is_dir(), reason="needs ../shared/data/chunking_eval")
@pytest.mark.parametrize("overlap_tokens", [0, 40])
def test_real_texts_keep_the_same_promises(offsets: TokenOffsets, overlap_tokens: int) -> None:
    for name in ("state_of_the_union", "wikitexts", "chatlogs"):
        document = Document(source=name, text=(CORPORA / f"{name}.md").read_text(encoding="utf-8"))
        chunks = StructureSplitter(max_tokens=128, overlap_tokens=overlap_tokens)(document, offsets=offsets)
        covered = 0
        for chunk in chunks:
            assert document.text[chunk.start : chunk.end] == chunk.text
            assert document.text[covered : max(chunk.start, covered)].strip() == ""
            assert len(offsets(chunk.text)) <= 128
            covered = chunk.end
        assert document.text[covered:].strip() == ""


def test_time_grows_with_the_document_and_no_faster() -> None:
    splitter = StructureSplitter(overlap_tokens=20)

    def words(text: str) -> list[tuple[int, int]]:
        return [(start, start + 4) for start in range(0, len(text), 5)]

    def seconds(copies: int) -> float:
        headed = document_of(*[("heading", "Head", 1), ("paragraph", "word word word. Word " * 4, 0)] * copies)
        started = time.process_time()
        splitter(headed, offsets=words)
        splitter(Document(source="x", text="word " * 40 * copies), offsets=words)
        return time.process_time() - started

    assert seconds(1600) < 24 * max(seconds(200), 0.01)
