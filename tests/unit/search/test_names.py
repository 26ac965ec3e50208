"""What the names of a workspace teach, and which documents a question names by them."""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cognicraft.records import Chunk, DocumentRecord, Metadata, digest
from cognicraft.search.aliases import SAMPLED_DOCUMENTS
from cognicraft.search.lexical import LexicalEncoder
from cognicraft.search.names import Names
from cognicraft.search.periods import Period, agreement, periods

LEXICAL = LexicalEncoder()


def terms(text: str) -> list[str]:
    return LEXICAL.terms(text, language="en")


def record(source: str, *, title: str = "", metadata: Metadata | None = None, revision: str = "1") -> DocumentRecord:
    return DocumentRecord(digest(source), source, revision, title=title, metadata=metadata or {})


def learned(*sources: str, texts: Mapping[str, Sequence[str]] | None = None) -> Names:
    def early(one: DocumentRecord) -> list[Chunk]:
        return [Chunk(text, 0, len(text)) for text in (texts or {})[one.source]]

    return Names.learn(
        [record(source) for source in sources], terms=terms, first_chunks_of=early if texts is not None else None
    )


def best(names: Names, question: str) -> list[str]:
    """Sources of the documents that are named most surely."""
    hints = names.fit(question).hints
    return [hint.source for hint in hints if hint.fit == hints[0].fit]


def fit(names: Names, question: str) -> dict[str, float]:
    return {hint.source: hint.fit for hint in names.fit(question).hints}


# ── periods ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ACME_2021_10K", "2021"),
        ("ACME_2021Q2_10Q", "2021 Q2"),
        ("2022 Q3 AAPL", "2022 Q3"),
        ("Acme's FY2021 capital expenditure", "2021"),
        ("in FY21", "2021"),
        ("the second quarter of 2021", "2021 Q2"),
        ("the 4th quarter of FY2020", "2020 Q4"),
        ("3Q22", "2022 Q3"),
        ("Q3'22", "2022 Q3"),
        ("in the first quarter", "Q1"),
        ("the first half of 2022", "2022 H1"),
        ("June 25, 2022", "2022-06-25"),
        ("25 June 2022", "2022-06-25"),
        ("filed on 2022-07-29", "2022-07-29"),
        ("minutes_20241231", "2024-12-31"),
        ("07/28/2023", "2023-07-28"),
        ("28.7.2023", "2023-07-28"),
        ("im zweiten Quartal 2021", "2021 Q2"),
        ("au deuxième trimestre 2021", "2021 Q2"),
        ("en el tercer trimestre de 2021", "2021 Q3"),
        ("im März 2024", "2024-03"),
        ("report-2022-06", "2022-06"),
        ("2021 10-Q", "2021"),
        ("2021_10K", "2021"),
    ],
)
def test_a_period_is_read_in_the_ways_people_write_it(text: str, expected: str) -> None:
    assert [str(mention.period) for mention in periods(text)] == [expected]


@pytest.mark.parametrize(
    "text", ["revenue of $2,022", "about 2022% more", "may be in March", "2022.5 units", "12 of 17"]
)
def test_a_number_is_no_year(text: str) -> None:
    assert periods(text) == []


def test_a_date_that_could_be_two_days_is_read_as_its_year() -> None:
    assert [mention.period for mention in periods("03/04/2023")] == [Period(2023)]


def test_a_quarter_beside_the_only_year_is_of_that_year() -> None:
    assert [str(mention.period) for mention in periods("Q1 and Q2 2023")] == ["2023 Q1", "2023 Q2"]
    assert [str(mention.period) for mention in periods("Q1 against 2022 and 2023")] == ["Q1", "2022", "2023"]
    assert [str(mention.period) for mention in periods("2019-2021")] == ["2019", "2020", "2021"]


def test_another_quarter_does_not_agree_though_the_year_is_the_same() -> None:
    assert agreement(Period(2021, quarter=2), Period(2021, quarter=3)) == 0.0
    assert agreement(Period(2021, quarter=2), Period(2020, quarter=2)) == 0.0
    exact, part, whole = (
        agreement(Period(2021), Period(2021)),
        agreement(Period(2021), Period(2021, quarter=2)),
        agreement(Period(2021, quarter=2), Period(2021)),
    )
    assert exact == 1.0 > part > 0.0
    assert exact > whole > 0.0


@given(st.text(max_size=60))
def test_any_text_has_periods_or_none(text: str) -> None:
    for mention in periods(text):
        assert 0 <= mention.start < mention.end <= len(text)
        assert 0 <= mention.period.quarter <= 4
        assert 0 <= mention.period.month <= 12


# ── which document is named ───────────────────────────────────────────────────────────────────────────────────

ACME = (
    "r/ACME_2021_10K.pdf",
    "r/ACME_2021Q2_10Q.pdf",
    "r/ACME_2022_10K.pdf",
    "r/BOLT_2021_10K.pdf",
    "r/BOLT_2021Q2_10Q.pdf",
)


def test_a_year_goes_to_the_annual_report_and_a_quarter_to_the_quarterly_one() -> None:
    names = learned(*ACME)
    assert best(names, "What was Acme's FY2021 capital expenditure?") == ["r/ACME_2021_10K.pdf"]
    assert best(names, "How did Acme do in the second quarter of 2021?") == ["r/ACME_2021Q2_10Q.pdf"]
    assert best(names, "Bolt's revenue in Q2 2021") == ["r/BOLT_2021Q2_10Q.pdf"]


def test_the_only_quarterly_report_of_a_small_workspace_is_found() -> None:
    names = learned("r/ACME_2021_10K.txt", "r/ACME_2021Q2_10Q.txt", "r/ACME_2022_10K.txt", "r/BOLT_2021_10K.txt")
    fits = fit(names, "What was Acme's capital expenditure in the second quarter of 2021?")
    assert fits["r/ACME_2021Q2_10Q.txt"] > 0.6 > 2 * fits.get("r/ACME_2021_10K.txt", 0.0)
    assert "r/BOLT_2021_10K.txt" not in fits


def test_without_a_quarterly_report_the_annual_one_is_next() -> None:
    names = learned("r/ACME_2021_10K.pdf", "r/ACME_2022_10K.pdf", "r/BOLT_2021_10K.pdf")
    assert best(names, "How did Acme do in the second quarter of 2021?") == ["r/ACME_2021_10K.pdf"]


def test_a_period_that_no_file_bears_is_told_and_the_company_is_still_named() -> None:
    named = learned(*ACME).fit("What did Acme earn in 2015?")
    assert named.unmatched == (Period(2015),)
    assert {hint.source.split("_")[0] for hint in named.hints} == {"r/ACME"}


def test_all_documents_of_a_comparison_are_named() -> None:
    names = learned(*ACME)
    fits = fit(names, "Compare the 2021 results of Acme and Bolt")
    annual = {"r/ACME_2021_10K.pdf", "r/BOLT_2021_10K.pdf"}
    assert min(fits[source] for source in annual) > max((f for s, f in fits.items() if s not in annual), default=0.0)
    assert min(fits[source] for source in annual) > 0.6
    quarters = learned("a Q1 2023.txt", "a Q2 2023.txt", "a Q3 2023.txt")
    assert set(best(quarters, "How did sales change from Q1 to Q2 2023?")) == {"a Q1 2023.txt", "a Q2 2023.txt"}


def test_the_latest_is_the_newest_of_the_company_named() -> None:
    names = learned("2022 Q3 acme.pdf", "2023 Q1 acme.pdf", "2023 Q3 bolt.pdf", "2022 Q3 bolt.pdf")
    assert best(names, "What does Acme's latest report say of sales?") == ["2023 Q1 acme.pdf"]
    logs = learned("log-2024-12-31.txt", "log-2025-01-02.txt", "notes.txt")
    assert best(logs, "What does the newest log say?") == ["log-2025-01-02.txt"]
    assert best(logs, "What does the oldest log say?") == ["log-2024-12-31.txt"]


def test_current_assets_do_not_ask_for_the_newest_report() -> None:
    names = learned("acme 2022.pdf", "acme 2023.pdf")
    assert names.fit("How high are the current assets?").hints == ()
    assert best(names, "What does the current Acme report say?") == ["acme 2023.pdf"]


def test_a_word_that_all_names_share_names_none() -> None:
    names = learned("report north.txt", "report south.txt", "report east.txt")
    assert names.fit("What does the report say?").hints == ()
    assert best(names, "What does the report of the north say?") == ["report north.txt"]


def test_one_common_word_of_a_long_title_names_hardly_anything() -> None:
    titles = [f"Effects of treatment {word} on the survival of patients with disease" for word in "abcdefgh"]
    names = Names.learn([record(f"{n}.txt", title=title) for n, title in enumerate(titles)], terms=terms)
    assert names.fit("Does treatment help the survival of mice?").hints == ()


def test_folders_numbers_and_metadata_name_documents_too() -> None:
    names = Names.learn(
        [
            record("contracts/smith/lease.txt"),
            record("contracts/miller/lease.txt"),
            record("book/chapter 3.txt"),
            record("book/chapter 12.txt"),
            record("x/scan1.pdf", metadata={"customer": "Zenith", "pages": 3}),
            record("x/scan2.pdf", metadata={"customer": "Orion"}),
        ],
        terms=terms,
    )
    assert best(names, "When does Miller's lease end?") == ["contracts/miller/lease.txt"]
    assert best(names, "What is chapter 3 about?") == ["book/chapter 3.txt"]
    assert best(names, "What did Zenith order?") == ["x/scan1.pdf"]


def test_the_file_name_decides_which_period_and_a_date_of_the_metadata_only_adds() -> None:
    names = Names.learn(
        [
            record("2023 Q1 acme.pdf", metadata={"subject": "for the period ending 2022-12-31"}),
            record("2022 Q4 acme.pdf", metadata={"subject": "for the period ending 2022-09-30"}),
        ],
        terms=terms,
    )
    assert best(names, "Acme in the first quarter of 2023") == ["2023 Q1 acme.pdf"]
    assert best(names, "Acme in 2022") == ["2022 Q4 acme.pdf"]
    assert best(names, "Acme as of December 31, 2022") == ["2023 Q1 acme.pdf"]


def test_a_workspace_of_one_or_no_document_names_none() -> None:
    assert learned().fit("What did Acme earn in 2021?").hints == ()
    assert learned("ACME_2021_10K.pdf").fit("What did the cat do?").hints == ()


@settings(max_examples=50, deadline=None)
@given(
    question=st.text(max_size=50),
    sources=st.lists(
        st.sampled_from(["2023 Q1 a.pdf", "b 2024-01.txt", "c", "folder/d e.md", "", "日本語.txt"]), unique=True
    ),
)
def test_a_fit_lies_between_0_and_1(question: str, sources: list[str]) -> None:
    hints = learned(*sources).fit(question).hints
    assert all(0.0 < hint.fit <= 1.0 for hint in hints)
    assert [hint.fit for hint in hints] == sorted((hint.fit for hint in hints), reverse=True)


# ── what the documents call themselves ────────────────────────────────────────────────────────────────────────

COMPANIES = {"AXQ": "Alderon", "BTR": "Brightwater", "CNV": "Convallia", "DMS": "Dorsimer", "EKL": "Ekland"}


def reports(companies: Mapping[str, str], years: Sequence[int], *, seed: int) -> dict[str, list[str]]:
    """Similarly named files whose names bear a code and whose first pages say whose they are."""
    chance = random.Random(seed)
    found = {}
    for (code, company), year, quarter in itertools.product(companies.items(), years, (1, 2, 3)):
        other = chance.choice([name for name in companies.values() if name != company])
        found[f"filings/{code}_{year}Q{quarter}.pdf"] = [
            f"{company} Corporation\nQuarterly Report",
            f"{company} (the Company) makes pumps. The Company reports in dollars. The quarterly report follows.",
            "Item 1. Financial Statements. Unaudited. See the financial statements of the Company.",
            f"{company} competes with others." if chance.random() < 0.7 else f"Competitors such as {other} exist.",
        ]
    return found


@pytest.mark.parametrize("seed", range(5))
def test_a_code_in_a_file_name_is_the_company_that_the_first_pages_name(seed: int) -> None:
    texts = reports(COMPANIES, (2021, 2022), seed=seed)
    names = learned(*texts, texts=texts)
    for (code, company), year, quarter in itertools.product(COMPANIES.items(), (2021, 2022), (1, 2, 3)):
        assert best(names, f"What was {company}'s revenue in Q{quarter} {year}?") == [
            f"filings/{code}_{year}Q{quarter}.pdf"
        ]
    assert best(names, "What was the revenue reported in the statements?") == []


def test_a_word_that_is_also_written_small_is_no_name() -> None:
    texts = {
        "AX_1.txt": ["Pumps by Alderon. Operating manual.", "Alderon pumps"],
        "AX_2.txt": ["Pumps by Alderon. Operating manual."],
        "BX_1.txt": ["Valves by Brightwater. The operating voltage."],
        "BX_2.txt": ["Valves by Brightwater."],
    }
    names = learned(*texts, texts=texts)
    assert {source[:2] for source in best(names, "What does Alderon make?")} == {"AX"}
    assert names.fit("What is the operating pressure?").hints == ()


# ── staleness and size ────────────────────────────────────────────────────────────────────────────────────────


def test_the_key_changes_with_the_documents_and_with_their_revisions() -> None:
    one, other = record("a.txt"), record("b.txt")
    key = Names.key_of([one])
    assert key == Names.learn([one], terms=terms).key
    assert key != Names.key_of([one, other])
    assert key != Names.key_of([record("a.txt", revision="2")])
    failed = DocumentRecord("f", "f.pdf", "1", status="failed")
    assert key == Names.key_of([one, failed])


def test_few_documents_are_read_and_a_question_costs_the_same_in_a_large_workspace() -> None:
    asked = 0

    def early(one: DocumentRecord) -> list[Chunk]:
        nonlocal asked
        asked += 1
        return [Chunk("Some text of Somebody.", 0, 22)]

    codes = ["".join(letters) for letters in itertools.product("ABCDEFGH", repeat=3)]
    sources = [
        f"{code}_{year}Q{quarter}.pdf" for code in codes for year in (2020, 2021, 2022) for quarter in (1, 2, 3, 4)
    ]
    names = Names.learn([record(source) for source in sources], terms=terms, first_chunks_of=early)
    assert len(names) == len(sources) > 6000
    assert asked <= SAMPLED_DOCUMENTS
    assert best(names, "What did BCD earn in Q2 2021?") == ["BCD_2021Q2.pdf"]
    started = time.perf_counter()
    for _ in range(20):
        names.fit("What did BCD earn in Q2 2021, and what did the market make of the year 2021?")
    assert (time.perf_counter() - started) / 20 < 0.02
    assert names.fit("What happened in 2021?").hints == ()


def test_where_documents_are_a_passage_or_two_a_title_alone_tells_less() -> None:
    def books(chunk_count: int) -> Names:
        records = [
            DocumentRecord(title, f"{n}.txt", "1", title=title, chunk_count=chunk_count)
            for n, title in enumerate(("Force", "Construction", "Normandy", "Oxygen"))
        ]
        return Names.learn(records, terms=terms)

    question = "What was the driving force of the revolution?"
    assert books(300).fit(question).hints[0].fit > 0.5 > books(2).fit(question).hints[0].fit


def test_a_question_of_words_that_every_name_holds_names_none() -> None:
    names = learned(*(f"filings/{code}_2020Q1_10Q.pdf" for code in ("AB", "CD", "EF")))
    assert names.fit("Which of the filings and the 10-Q is a filing?").hints == ()
