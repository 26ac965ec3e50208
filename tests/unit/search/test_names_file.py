"""What the names teach, kept in a file: the same as learned, never trusted further than it can be checked."""

from __future__ import annotations

import itertools
import json
import pickle
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cognicraft.records import Chunk, DocumentRecord, Metadata, digest
from cognicraft.search import names_file
from cognicraft.search.labels import Terms
from cognicraft.search.lexical import LexicalEncoder
from cognicraft.search.names import Names
from cognicraft.search.names_file import load, save
from cognicraft.search.periods import periods
from datasets import DATA

if TYPE_CHECKING:
    from _typeshed import TraceFunction

LEXICAL = LexicalEncoder()
FILINGS = DATA / "sec10q_docugami" / "v1" / "docs"
STAMP = "tokenizer 1 en"
QUESTIONS = (
    "What was Alderon's revenue in Q2 2021?",
    "What does the latest 10-Q of AX say?",
    "Open the oldest report of BQ",
    "reports of 2022",
    "the current quarter",
    "chapter 3 of the handbook, March 2022",
    "",
)


def terms(text: str) -> list[str]:
    return LEXICAL.terms(text, language="en")


def record(source: str, *, title: str = "", metadata: Metadata | None = None, chunk_count: int = 40) -> DocumentRecord:
    return DocumentRecord(
        digest(source), source, "1", title=title, chunk_count=chunk_count, metadata=dict(metadata or {})
    )


def reports(cut: Terms = terms) -> Names:
    """Twelve reports of three companies, whose first pages say what the companies are called, and a handbook."""
    called = {"AX": "Alderon", "BQ": "Brumley", "CZ": "Corvane"}
    texts = {
        f"filings/{code}/2021Q{quarter}_{code}_10Q.pdf": f"{name} made profits. Quarterly report of {name}."
        for code, name in called.items()
        for quarter in (1, 2, 3, 4)
    }

    def first(one: DocumentRecord) -> list[Chunk]:
        text = texts.get(one.source, "How a quarterly report is made.")
        return [Chunk(text, 0, len(text))]

    records = [record(source, title=f"Report {source[8:10]} 2021") for source in texts]
    records.append(record("handbook ch. 3.md", title="Handbook, chapter 3", metadata={"kind": "manual 2022-03"}))
    return Names.learn(records, terms=cut, first_chunks_of=first)


def assert_same(one: Names, other: Names, *questions: str) -> None:
    assert one.key == other.key
    assert one.sources == other.sources
    assert one.documents_of(one.sources[:3]) == other.documents_of(one.sources[:3])
    for question in questions:
        assert one.fit(question) == other.fit(question)
        words, asked = one.words(question), [mention.period for mention in periods(question)]
        assert words == other.words(question)
        assert [one.knows(word) for word in words] == [other.knows(word) for word in words]
        for newest in (False, True):
            assert one.whole(words, asked, newest=newest) == other.whole(words, asked, newest=newest)
    for known in ("", *(document for document, _ in one.documents_of(one.sources[:3]))):
        assert one.source(known) == other.source(known)


def kept(names: Names, folder: Path, *, stamp: str = STAMP) -> Path:
    path = folder / "names.json"
    assert save(names, path, stamp=stamp)
    return path


def read_back(path: Path) -> Names:
    names = load(path, terms=terms, stamp=STAMP)
    assert names is not None
    return names


# ── the same as learned ───────────────────────────────────────────────────────────────────────────────────────

_PIECES = st.sampled_from(
    [
        *("AX", "BQ", "report", "Report", "10-K", "10Q", "2021", "2021Q2", "Q3", "FY22", "March 2022", "chapter", "3"),
        *(
            "Straße",
            "日本語",
            "отчёт",
            "latest",
            "draft-v2",
            "20220315",
            "e\u0301t\u00e9",
            "\udcff",
            "#",
            "?",
            "..",
            " ",
        ),
    ]
)
_TEXTS = st.one_of(
    st.lists(_PIECES, max_size=5).map(" ".join),
    st.lists(_PIECES, max_size=4).map("_".join),
    # Any characters at all: a file name on disk need not be Unicode.
    st.text(st.characters(), max_size=12),
)
_RECORDS = st.builds(
    record,
    st.lists(_TEXTS, min_size=1, max_size=4).map("/".join),
    title=_TEXTS,
    metadata=st.dictionaries(st.sampled_from(["team", "year"]), st.one_of(_TEXTS, st.integers()), max_size=2),
    chunk_count=st.sampled_from([0, 2, 40]),
)


# One folder will do: each file takes the place of the one before.
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    records=st.lists(_RECORDS, max_size=9, unique_by=lambda one: one.id),
    passages=st.lists(_TEXTS, min_size=1, max_size=3),
    question=_TEXTS,
)
def test_what_is_read_answers_as_what_was_learned(
    tmp_path: Path, records: list[DocumentRecord], passages: list[str], question: str
) -> None:
    def first(one: DocumentRecord) -> list[Chunk]:
        own = [f"{one.title} {passages[len(one.source) % len(passages)]}"]
        return [Chunk(text, 0, len(text), heading_path=(one.title,)) for text in own]

    learned = Names.learn(records, terms=terms, first_chunks_of=first)
    read = read_back(kept(learned, tmp_path))
    assert read.labels == learned.labels
    assert dict(read.aliases) == dict(learned.aliases)
    assert_same(learned, read, question, f"the latest {question} in 2021", *QUESTIONS)


def test_what_the_texts_call_the_files_is_kept(tmp_path: Path) -> None:
    learned = reports()
    read = read_back(kept(learned, tmp_path))
    hints = read.fit("What was Alderon's revenue in Q2 2021?").hints
    assert [hint.source for hint in hints if hint.fit == hints[0].fit] == ["filings/AX/2021Q2_AX_10Q.pdf"]
    assert read.aliases
    assert_same(learned, read, *QUESTIONS)


def test_the_names_of_real_filings_are_the_same_again(tmp_path: Path) -> None:
    if not FILINGS.is_dir():
        pytest.skip(f"no real filings: {FILINGS.name} is not beside the repository")
    sources = sorted(str(path.relative_to(DATA)) for path in FILINGS.rglob("*.pdf"))
    learned = Names.learn([record(source, title=Path(source).stem) for source in sources], terms=terms)
    questions = [f"What does {Path(source).stem.replace('_', ' ')} say?" for source in sources[:40]]
    assert_same(learned, read_back(kept(learned, tmp_path)), *questions, *QUESTIONS)


def test_what_is_learned_changed_and_so_must_the_format() -> None:
    """If this fails, what is learned from names has changed: raise FORMAT, or old files go on being read."""
    learned = digest(json.dumps(names_file._written(reports(lambda text: [text.casefold()])), sort_keys=True), size=8)
    assert (names_file.FORMAT, learned) == (1, "4b60232d58967f16")


def test_a_folder_called_like_its_files_counts_once() -> None:
    # Counted twice, three companies of four reports each would look like more than half of the documents.
    hints = reports().fit("What did Brumley earn?").hints
    assert {hint.source[:11] for hint in hints if hint.fit == hints[0].fit} == {"filings/BQ/"}


@pytest.mark.parametrize("text", ["dıc 2020", "ſept 3, 2020", "OoKt 2020", "MAİ 2021", "2 maı 2021"])
def test_a_name_with_letters_like_those_of_a_month_is_read(text: str) -> None:
    assert {mention.period.year for mention in periods(text)} <= {2020, 2021}
    assert len(Names.learn([record(f"{text}.pdf", title=text)], terms=terms)) == 1


# ── files of no use ───────────────────────────────────────────────────────────────────────────────────────────


def test_of_another_tokenizer_or_format_nothing_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = kept(reports(), tmp_path)
    assert load(path, terms=terms, stamp=STAMP) is not None
    assert load(path, terms=terms, stamp="tokenizer 2 en") is None
    monkeypatch.setattr(names_file, "FORMAT", names_file.FORMAT + 1)
    assert load(path, terms=terms, stamp=STAMP) is None


def test_of_no_file_or_a_folder_nothing_is_read(tmp_path: Path) -> None:
    assert load(tmp_path / "absent", terms=terms, stamp=STAMP) is None
    assert load(tmp_path, terms=terms, stamp=STAMP) is None


_HEAD_ONLY = b'{"format":1,"stamp":"tokenizer 1 en"}\n{}'
_OTHER_FILES = (
    b"",
    b"\n",
    b"{}",
    b"[]\n[]",
    b"null\nnull",
    b"\xff\xfe\x00",
    b"[" * 100_000,
    pickle.dumps({"format": 1}),
)


@pytest.mark.parametrize("content", [_HEAD_ONLY, *_OTHER_FILES], ids=lambda content: str(content[:12]))
def test_of_another_file_nothing_is_read(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "names.json"
    path.write_bytes(content)
    assert load(path, terms=terms, stamp=STAMP) is None


def test_of_a_file_with_any_byte_changed_or_cut_off_nothing_wrong_is_read(tmp_path: Path) -> None:
    path = kept(reports(), tmp_path)
    whole = path.read_bytes()
    for at in range(0, len(whole), 7):
        path.write_bytes(whole[:at])
        assert load(path, terms=terms, stamp=STAMP) is None
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        assert load(path, terms=terms, stamp=STAMP) is None


def _made_by_somebody(body: object, path: Path) -> None:
    text = json.dumps(body).encode()
    head = {"format": names_file.FORMAT, "stamp": STAMP, "digest": names_file._digest(text)}
    path.write_bytes(json.dumps(head).encode() + b"\n" + text)


_WRONG: tuple[object, ...] = (
    None,
    "x",
    7,
    [],
    [[]],
    {},
    [-1],
    [[1], [10**9]],
    [[-1, 2], [0]],
    [["x"]],
    [1e300],
    [2**70],
)


@pytest.mark.parametrize("column", list(names_file._written(Names.learn([], terms=terms))))
def test_a_file_made_by_somebody_with_a_right_digest_can_do_no_harm(tmp_path: Path, column: str) -> None:
    good = json.loads(json.dumps(names_file._written(reports())))
    path = tmp_path / "names.json"
    _made_by_somebody(good, path)
    assert load(path, terms=terms, stamp=STAMP) is not None
    _made_by_somebody({name: value for name, value in good.items() if name != column}, path)
    assert load(path, terms=terms, stamp=STAMP) is None
    for wrong in _WRONG:
        _made_by_somebody(good | {column: wrong}, path)
        names = load(path, terms=terms, stamp=STAMP)
        # What is let through (no aliases, another key) is well formed: questions can be asked of it.
        for question in QUESTIONS if names is not None else ():
            assert names is not None
            names.fit(question)
            names.whole(names.words(question), [one.period for one in periods(question)], newest=True)


# ── writing ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_where_the_folder_cannot_be_written_to_nothing_is_kept(tmp_path: Path) -> None:
    assert save(reports(), tmp_path / "absent" / "names.json", stamp=STAMP) is False
    (tmp_path / "file").write_text("")
    assert save(reports(), tmp_path / "file" / "names.json", stamp=STAMP) is False
    (tmp_path / "folder").mkdir()
    assert save(reports(), tmp_path / "folder", stamp=STAMP) is False
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder"], "nothing half written is left"


def test_a_folder_that_may_only_be_read_is_no_error(ordinary_folder: Path) -> None:
    ordinary_folder.chmod(0o500)
    try:
        assert save(reports(), ordinary_folder / "names.json", stamp=STAMP) is False
    finally:
        ordinary_folder.chmod(0o700)


def test_a_new_file_takes_the_place_of_the_old_one_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    path = kept(Names.learn([record("old.txt")], terms=terms), tmp_path)
    assert read_back(path).sources == ["old.txt"]
    kept(Names.learn([record("new.txt")], terms=terms), tmp_path)
    assert read_back(path).sources == ["new.txt"]
    assert [one.name for one in tmp_path.iterdir()] == [path.name]


# ── cost ──────────────────────────────────────────────────────────────────────────────────────────────────────


def many(count: int, *, years: Sequence[int] = (2018, 2019, 2020, 2021)) -> list[DocumentRecord]:
    """Quarterly reports, none of which shares a word or a period with those of `reports`."""
    codes = map("".join, itertools.product("ABCDEFGHIJ", repeat=3))
    made = (
        record(f"archive/{code}/{year}Q{quarter}_{code}_plan.pdf", title=f"Plan of {code}, Q{quarter} {year}")
        for code, year, quarter in itertools.product(codes, years, (1, 2, 3, 4))
    )
    return list(itertools.islice(made, count))


@pytest.mark.parametrize(("count", "most_ms"), [(20, 15), (10_000, 150)])
def test_reading_is_quick_and_a_small_part_of_learning(tmp_path: Path, count: int, most_ms: float) -> None:
    records = many(count)
    started = time.process_time()
    learned = Names.learn(records, terms=terms)
    learning_s = time.process_time() - started
    path = kept(learned, tmp_path)
    reading_s = _least_s(lambda: read_back(path), times=5)
    # A slow machine is allowed more, in proportion to what it took to learn.
    assert reading_s < max(most_ms / 1000, learning_s / 5)


def _least_s(call: Callable[[], object], *, times: int) -> float:
    """CPU seconds of the quickest of some calls."""
    taken = []
    for _ in range(times):
        started = time.process_time()
        call()
        taken.append(time.process_time() - started)
    return min(taken)


def _steps(call: Callable[[], object]) -> int:
    """Lines that are run: the same on every machine."""
    steps = 0

    def trace(frame: FrameType, event: str, argument: Any) -> TraceFunction:
        nonlocal steps
        steps += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return steps


@pytest.fixture(scope="module")
def growing(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Names, Names]]:
    """The same reports among 100 and among 10,000 other documents: as learned, and as read from a file."""
    own = [record(f"filings/{code}/2022Q{quarter}_{code}_10Q.pdf") for code in ("AX", "BQ", "CZ") for quarter in (1, 2)]
    own += [record("handbook.md", title="Handbook of tides")]
    found = []
    for count in (100, 10_000):
        learned = Names.learn([*own, *many(count)], terms=terms)
        found.append((learned, read_back(kept(learned, tmp_path_factory.mktemp("growing")))))
    return found


@pytest.mark.parametrize(
    "question",
    [
        "What did AX earn?",
        "What did AX earn in 2022?",
        "What did BQ earn in Q2 2022?",
        "What did AX and CZ earn in the first quarter of 2022?",
        "Is there a handbook of tides?",
        "the latest 10-Q of CZ",
        "the latest filing",
        "reports of 2022",
        "What happened in March 2022?",
        "What is the boiling point of water, and who found it?",
        "",
    ],
)
def test_documents_that_share_no_word_with_the_question_cost_it_nothing(
    growing: list[tuple[Names, Names]], question: str
) -> None:
    for few, lots in zip(*growing, strict=True):
        assert {hint.source for hint in few.fit(question).hints} == {hint.source for hint in lots.fit(question).hints}
        # A few more where a word that was too common to tell is no longer so; not one for each of the documents.
        assert _steps(lambda: lots.fit(question)) <= 1.1 * _steps(lambda: few.fit(question)) + 50  # noqa: B023
        # A list or a set that is gone through in one line takes time though it is one step.
        few_s, lots_s = (_least_s(lambda: names.fit(question), times=30) for names in (few, lots))  # noqa: B023
        assert lots_s <= 2 * few_s + 0.0002


def test_a_year_of_all_documents_is_given_up_early() -> None:
    names = Names.learn(many(10_000, years=(2021, 2022)), terms=terms)
    question = "What happened in 2021?"
    assert names.fit(question).hints == ()
    assert _steps(lambda: names.fit(question)) < 500
