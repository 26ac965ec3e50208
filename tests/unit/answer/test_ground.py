"""Evidence: what is given to a model, what is not, and that both are told."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import replace

import pytest
from evidence_chunks import cut_up, stored, words
from hypothesis import given
from hypothesis import strategies as st

from cognicraft.answer.ground import CITABLE_TOKENS, Evidence, pack, whole_document
from cognicraft.answer.passages import Piece, joined
from cognicraft.records import StoredChunk

# Counts as no tokenizer does, so that nothing relies on one.
COUNTERS = [words, len, lambda text: math.ceil(len(text) / 4)]


def packed(chunks: list[StoredChunk], *, max_tokens: int = 1000) -> Evidence:
    return pack(chunks, max_tokens=max_tokens, count_tokens=words)


def test_passages_are_numbered_from_one_in_the_order_of_the_ranking() -> None:
    chunks = [stored("Beta.", source="b"), stored("Alpha.", source="a"), stored("Gamma.", source="c")]
    evidence = pack(chunks, max_tokens=1000, count_tokens=words, scores={chunks[1].id: 0.5})
    assert [(p.number, p.text, p.place.file) for p in evidence.passages] == [
        (1, "Beta.", "b"),
        (2, "Alpha.", "a"),
        (3, "Gamma.", "c"),
    ]
    assert evidence.passages[1].score == 0.5
    assert evidence.passage(2) is evidence.passages[1]
    assert evidence.passage(0) is evidence.passage(4) is None
    assert evidence.notes == ()


def test_neighbours_in_a_document_become_one_passage_and_it_is_said() -> None:
    text = "One is first.  Two is second. Three is third.\n\nFour is fourth."
    first, second, third, fourth = cut_up(text, [(0, 13), (15, 29), (30, 45), (47, 62)])
    evidence = packed([third, stored("Else.", source="else"), first, second])
    assert [p.text for p in evidence.passages] == [
        "One is first.\n\nTwo is second.\nThree is third.",
        "Else.",
    ]
    joined = evidence.passages[0]
    assert (joined.place.start, joined.place.end) == (0, 45)
    assert joined.place.chunk_ids == (first.id, second.id, third.id)
    assert evidence.notes == ("3 of 4 passages stand side by side and were joined into 1.",)
    # The chunk between them is not there: what it holds must not be passed over as white space.
    assert len(packed([second, fourth]).passages) == 2


def test_overlapping_chunks_give_their_words_once() -> None:
    text = "Alpha beta gamma delta epsilon zeta."
    evidence = packed(cut_up(text, [(0, 22), (11, 36), (6, 10)]))
    assert [p.text for p in evidence.passages] == [text]


def test_chunks_that_disagree_where_they_overlap_stay_apart() -> None:
    chunks = [stored("Alpha beta gamma", start=0), stored("BETA gamma delta", start=6)]
    assert len(packed(chunks).passages) == 2


def test_pages_and_headings_come_from_the_chunks() -> None:
    chunks = [
        stored("Second part.", start=12, page=4, page_end=5, headings=["Costs", "Later"]),
        stored("First part.", start=0, page=3, headings=["Costs"]),
    ]
    (passage,) = packed(chunks).passages
    assert (passage.place.page, passage.place.page_end) == (3, 5)
    assert passage.heading_path == ("Costs",)
    shown = passage.shown("abc")
    assert 'file="docs/report.txt"' in shown
    assert 'page="3-5"' in shown
    assert 'heading="Costs"' in shown


def test_equal_words_are_given_once_and_every_place_is_kept() -> None:
    chunks = [
        stored("The fee is 5 euro.", source="2021/fees.pdf", page=2),
        stored("Other.", source="other"),
        stored("the fee  is 5\nEuro.", source="2022/fees.pdf", page=7),
        stored("The fee is 5 euro.", source="2021/fees.pdf", start=400, page=9),
    ]
    evidence = packed(chunks)
    assert [p.text for p in evidence.passages] == ["The fee is 5 euro.", "Other."]
    also = evidence.passages[0].also
    assert [(place.file, place.page, place.start) for place in also] == [
        ("2022/fees.pdf", 7, 0),
        ("2021/fees.pdf", 9, 400),
    ]
    assert 'also="2022/fees.pdf page 7; 2021/fees.pdf page 9"' in evidence.passages[0].shown(evidence.mark)
    assert any(note.startswith("2 of 4 passages repeat") for note in evidence.notes)


def test_a_copied_document_stands_for_itself_once_and_in_one_piece() -> None:
    text = "One is first. Two is second."
    spans = [(0, 13), (14, 28)]
    one, two = cut_up(text, spans, source="a"), cut_up(text, spans, source="b")
    (passage,) = packed([one[0], two[0], two[1], one[1]]).passages
    assert (passage.place.source, passage.place.start, passage.place.end) == ("a", 0, 28)
    assert [(place.source, place.start, place.end) for place in passage.also] == [("b", 0, 28)]


def test_what_does_not_fit_is_cut_after_a_sentence_and_the_rest_left_out_and_both_are_said() -> None:
    chunks = [
        stored("Short one.", source="a"),
        stored("First sentence here. Second sentence here. " + "Long " * 40 + "third.", source="b"),
        stored("Third.", source="c"),
        stored("Fourth.", source="d"),
    ]
    evidence = packed(chunks, max_tokens=packed(chunks[:2]).tokens - 1)
    assert [p.text for p in evidence.passages] == ["Short one.", "First sentence here. Second sentence here."]
    assert [p.cut for p in evidence.passages] == [False, True]
    assert evidence.left_out == (chunks[2].id, chunks[3].id)
    limit = evidence.max_tokens
    assert evidence.notes == (
        f"1 of 4 passages was cut: the evidence is limited to {limit} tokens.",
        f"2 of 4 passages were left out: the evidence is limited to {limit} tokens.",
    )


def test_a_passage_of_which_no_sentence_fits_is_passed_over_for_one_that_does() -> None:
    chunks = [stored("Brief.", source="a"), stored("word " * 60, source="b"), stored("Little.", source="c")]
    evidence = packed(chunks, max_tokens=40)
    assert [p.text for p in evidence.passages] == ["Brief.", "Little."]
    assert evidence.left_out == (chunks[1].id,)
    assert evidence.notes == ("1 of 3 passages was left out: the evidence is limited to 40 tokens.",)


def test_the_first_passage_is_cut_anywhere_rather_than_left_out() -> None:
    evidence = packed([stored(" ".join(f"word{n}" for n in range(100)))], max_tokens=30)
    assert evidence.passages[0].text.startswith("word0 word1 ")
    assert evidence.passages[0].cut
    assert 20 < evidence.tokens <= 30


def test_a_cut_passage_is_not_joined_over_what_was_cut_off() -> None:
    text = "价格是五。丙丁是二。"
    earlier, later = stored(text[:6]), stored(text[6:], start=6)
    pieces = [Piece(earlier, 0, 5, rank=1, cut=True), Piece(later, 6, 10)]
    assert [len(run) for run in joined(pieces)] == [1, 1]
    assert [len(run) for run in joined([replace(pieces[0], cut=False), pieces[1]])] == [2]


def test_no_chunks_no_passages() -> None:
    evidence = packed([])
    assert evidence.passages == ()
    assert evidence.tokens == 0
    assert evidence.notes == ()


def test_a_chunk_given_twice_is_one() -> None:
    chunk = stored("Once.")
    evidence = packed([chunk, chunk])
    assert evidence.passages[0].place.chunk_ids == (chunk.id,)
    assert evidence.passages[0].also == ()


# ── a whole document ──────────────────────────────────────────────────────────────────────────────────────────


def test_a_whole_document_comes_in_order_in_passages_short_enough_to_cite() -> None:
    text = "\n\n".join(f"Sentence {number} says that it is number {number} of many." for number in range(200))
    spans = [(match.start(), match.end()) for match in re.finditer(r"(?:Sentence[^.]*\.\s*){1,5}", text)]
    spans = [(start, start + len(text[start:end].rstrip())) for start, end in spans]
    chunks = cut_up(text, spans)
    evidence = whole_document(chunks[::-1], max_tokens=16_000, count_tokens=words)
    assert len(evidence.passages) > 4
    assert all(words(passage.text) <= CITABLE_TOKENS for passage in evidence.passages)
    assert "\n\n".join(passage.text for passage in evidence.passages) == text
    assert [passage.number for passage in evidence.passages] == list(range(1, len(evidence.passages) + 1))
    assert evidence.notes == ()
    assert evidence.left_out == ()


def test_a_document_longer_than_the_budget_is_cut_and_the_note_says_how_much_is_missing() -> None:
    text = " ".join(f"Sentence {number} is here." for number in range(1000))
    spans = [(match.start(), match.end()) for match in re.finditer(r"(?:Sentence \d+ is here\. ?){1,20}", text)]
    chunks = [
        replace(one, chunk=replace(one.chunk, chunk=replace(one.chunk.chunk, page=n + 1, page_end=n + 1)))
        for n, one in enumerate(cut_up(text, [(start, end - (text[end - 1] == " ")) for start, end in spans]))
    ]
    evidence = whole_document(chunks, max_tokens=2000, count_tokens=words)
    assert 1900 < evidence.tokens <= 2000
    given = "\n".join(passage.text for passage in evidence.passages)
    assert text.replace(" ", "").startswith(given.replace("\n", "").replace(" ", ""))
    assert given.endswith("is here.")
    last_page = evidence.passages[-1].place.page_end
    assert evidence.notes == (
        f"report.txt was not read to its end: the last 52 %, after page {last_page}, were left out, because the "
        "evidence is limited to 2,000 tokens.",
    )
    assert set(evidence.left_out) == {one.id for one in chunks[last_page:]}


def test_one_long_chunk_of_a_whole_document_is_split_at_sentences() -> None:
    text = " ".join(f"Sentence {number} is here." for number in range(300))
    evidence = whole_document([stored(text)], max_tokens=16_000, count_tokens=words)
    assert len(evidence.passages) > 3
    for passage in evidence.passages:
        assert text[passage.place.start : passage.place.end] == passage.text
        assert passage.text.endswith(".")


# ── whatever the chunks ───────────────────────────────────────────────────────────────────────────────────────

_WORD = st.text(alphabet="abcdeé中.<>[]1 ", min_size=1, max_size=7).map(lambda text: text.replace(" ", "") + "x")


@st.composite
def documents(draw: st.DrawFn, *, most: int = 3) -> tuple[dict[str, str], list[StoredChunk]]:
    """Documents with the chunks they were cut into, which may overlap."""
    texts: dict[str, str] = {}
    chunks: list[StoredChunk] = []
    for number in range(draw(st.integers(1, most))):
        parts = draw(st.lists(st.lists(_WORD, min_size=3, max_size=12), min_size=1, max_size=6))
        text = ""
        spans = []
        for part in parts:
            text += draw(st.sampled_from(["", " ", "\n", "\n\n", "\n \n\n"])) if text else ""
            start = len(text)
            text += " ".join(part)
            back = draw(st.sampled_from([0, 0, 3, 9]))
            spans.append((max(start - back, 0), len(text)))
        source = f"docs/{number}.txt"
        texts[source] = text
        for start, end in spans:
            piece = text[start:end]
            first = start + len(piece) - len(piece.lstrip())
            chunks.append(stored(text[first:end], source=source, start=first))
    return texts, chunks


def solid(text: str) -> str:
    return "".join(text.split())


def check(evidence: Evidence, texts: dict[str, str], chunks: list[StoredChunk], count: Callable[[str], int]) -> None:
    assert sum(count(passage.shown(evidence.mark)) for passage in evidence.passages) == evidence.tokens
    assert evidence.tokens <= evidence.max_tokens
    assert [passage.number for passage in evidence.passages] == list(range(1, len(evidence.passages) + 1))
    told = {identifier for passage in evidence.passages for identifier in passage.place.chunk_ids}
    told |= {one for passage in evidence.passages for place in passage.also for one in place.chunk_ids}
    assert told | set(evidence.left_out) == {chunk.id for chunk in chunks}
    assert not evidence.left_out or any("out" in note for note in evidence.notes)
    for passage in evidence.passages:
        place = passage.place
        original = texts[place.source][place.start : place.end]
        assert len(passage.text) == len(original)
        # White space between chunks is given back as line breaks: all else is exact, each at its position.
        assert all(a == b or (a == "\n" and b.isspace()) for a, b in zip(passage.text, original, strict=True))
        assert evidence.mark not in passage.text
        for other in passage.also:
            text = texts[other.source]
            assert solid(text[other.start : other.end]).casefold() in solid("".join(texts.values())).casefold()


@given(documents(), st.data(), st.integers(1, 400), st.sampled_from(COUNTERS))
def test_whatever_is_packed_fits_is_exact_and_is_accounted_for(
    made: tuple[dict[str, str], list[StoredChunk]], data: st.DataObject, max_tokens: int, count: Callable[[str], int]
) -> None:
    texts, chunks = made
    ranked = data.draw(st.permutations(chunks))[: data.draw(st.integers(0, len(chunks)))]
    evidence = pack(ranked, max_tokens=max_tokens, count_tokens=count)
    check(evidence, texts, ranked, count)
    whole = [solid(passage.text).casefold() for passage in evidence.passages if not passage.cut]
    alone = [text for text, passage in zip(whole, evidence.passages, strict=False) if len(passage.place.chunk_ids) == 1]
    assert len(set(alone)) == len(alone)


@given(documents(most=1), st.integers(1, 400), st.sampled_from(COUNTERS))
def test_whatever_document_is_read_fits_is_exact_and_is_accounted_for(
    made: tuple[dict[str, str], list[StoredChunk]], max_tokens: int, count: Callable[[str], int]
) -> None:
    texts, chunks = made
    evidence = whole_document(chunks[::-1], max_tokens=max_tokens, count_tokens=count)
    check(evidence, texts, chunks, count)
    (text,) = texts.values()
    given_text = "".join(passage.text for passage in evidence.passages)
    assert solid(text).startswith(solid(given_text))
    assert bool(evidence.notes) == (solid(text) != solid(given_text))


@pytest.mark.parametrize("max_tokens", [0, 1, 5])
def test_a_budget_too_small_for_anything_gives_nothing_and_says_so(max_tokens: int) -> None:
    evidence = packed([stored("Some words stand here.")], max_tokens=max_tokens)
    assert evidence.passages == ()
    assert len(evidence.left_out) == 1
    assert evidence.notes
