"""The demo handbook is right: each worked number is computed here from its formula and looked up in the text.

The formulas are written out once more in this file, on purpose without the product's own code, so that a fault there
cannot hide in the handbook. A number is formatted as a person rounds it, half away from zero.
"""

from __future__ import annotations

import functools
import html.parser
import importlib.util
import json
import math
import re
import statistics
import sys
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from types import ModuleType

import pytest

DEMO = Path(__file__).resolve().parents[2] / "demo"
DOCUMENTS = DEMO / "documents"
HANDBOOK = DOCUMENTS / "retrieval-handbook.pdf"


def read(name: str) -> str:
    """The text of one chapter or document by its file name, white space evened out and Markdown marks dropped."""
    path = DEMO / "source" / name if (DEMO / "source" / name).exists() else DOCUMENTS / name
    return " ".join(re.sub(r"[*`]{1,3}(?=\S)|(?<=\S)[*`]{1,3}", "", path.read_text(encoding="utf-8")).split())


def tables(name: str) -> dict[tuple[str, ...], list[list[str]]]:
    """The pipe tables of a file: header cells -> rows of cells."""
    path = DEMO / "source" / name if (DEMO / "source" / name).exists() else DOCUMENTS / name
    found: dict[tuple[str, ...], list[list[str]]] = {}
    head: tuple[str, ...] = ()
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line.startswith("|"):
            head = ()
            continue
        cells = tuple(cell.strip() for cell in line.strip("|").split("|"))
        if not head:
            head = cells
            assert head not in found, f"{name}: two tables have the head {head}"
            found[head] = []
        elif not set("".join(cells)) <= set("-: "):
            assert len(cells) == len(head), f"{name}: row {cells} does not fit the head {head}"
            found[head].append(list(cells))
    return found


def table(name: str, first: str, second: str = "") -> list[list[str]]:
    """The rows of the one table whose head begins with these cells."""
    matches = [rows for head, rows in tables(name).items() if head[0] == first and (not second or head[1] == second)]
    assert len(matches) == 1, f"{name}: {len(matches)} tables begin with {first!r}, {second!r}"
    return matches[0]


def rounded(value: float, places: int, *, grouped: bool = False) -> str:
    """The value as the handbook prints it: so many places, half away from zero, no minus before a zero."""
    step = Decimal(1).scaleb(-places)
    # Twelve digits first: 0.95 * 0.90 must round like 0.855 and not like the nearest binary number below it.
    number = Decimal(f"{value:.12f}").quantize(step, rounding=ROUND_HALF_UP) + 0
    return f"{number:,}" if grouped else f"{number}"


def number(cell: str) -> float:
    """A printed number as a float."""
    return float(cell.replace(",", "").removesuffix(" %"))


# The formulas of the handbook.


def idf(documents: int, containing: int) -> float:
    return math.log(1 + (documents - containing + 0.5) / (containing + 0.5))


def frequency_factor(tf: float, length_ratio: float, *, k1: float, b: float) -> float:
    return tf * (k1 + 1) / (tf + k1 * (1 - b + b * length_ratio))


def chunk_count(tokens: int, window: int, overlap: int) -> int:
    return math.ceil((tokens - overlap) / (window - overlap))


def cosine(left: tuple[float, ...], right: tuple[float, ...]) -> float:
    dot = sum(x * y for x, y in zip(left, right, strict=True))
    return dot / (math.hypot(*left) * math.hypot(*right))


def discounted_gain(gains: list[float]) -> float:
    return sum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, 1))


def confidence(supported: int, partial: int, unsupported: int) -> float:
    total = supported + partial + unsupported
    value = (supported + 0.5 * partial) / total - 0.1 * unsupported + (0.1 if unsupported == 0 else 0.0)
    return min(1.0, max(0.0, value))


def minmax(scores: dict[str, float]) -> dict[str, float]:
    low, high = min(scores.values()), max(scores.values())
    return {name: (score - low) / (high - low) for name, score in scores.items()}


def zscore(scores: dict[str, float]) -> dict[str, float]:
    mean, deviation = statistics.fmean(scores.values()), statistics.pstdev(scores.values())
    return {name: (score - mean) / deviation for name, score in scores.items()}


def reciprocal_ranks(scores: dict[str, float]) -> dict[str, float]:
    return {name: 1 / (60 + rank) for rank, name in enumerate(sorted(scores, key=lambda n: -scores[n]), 1)}


def distribution_based(scores: dict[str, float]) -> dict[str, float]:
    return {name: min(1.0, max(0.0, 0.5 + z / 6)) for name, z in zscore(scores).items()}


DENSE = {"A": 0.80, "B": 0.76, "C": 0.70, "D": 0.54}
LEXICAL = {"C": 18.0, "A": 9.0, "E": 8.0, "F": 5.0}

Z = {name: zscore(scores) for name, scores in (("dense", DENSE), ("lexical", LEXICAL))}
Y_VECTOR = (0.020, -0.012, 0.015, -0.005)
X_VECTOR = (0.42, -0.13, 0.07, -0.88)
LATENCIES_MS = [8, 8, 9, 9, 9, 10, 10, 10, 11, 11, 11, 12, 12, 13, 13, 14, 15, 18, 40, 95]
GRADES = [3.0, 0, 2, 0, 0, 1, 0, 0, 0, 0]
BEST_GRADES = [3.0, 2, 1, 1]


def exponential(gains: list[float]) -> list[float]:
    return [2**gain - 1 for gain in gains]


# (file, the sentence part that must stand there, built from the computed number)
STATEMENTS: list[tuple[str, str]] = [
    ("01-answering-from-documents.md", f"0.95 * 0.90 * 0.92 = {rounded(0.95 * 0.90 * 0.92, 4)}"),
    ("01-answering-from-documents.md", f"fourth power is {rounded(0.97**4, 3)}"),
    ("02-reading-documents.md", f"Größe has {len('Größe')} characters and takes {len('Größe'.encode())} bytes"),
    ("02-reading-documents.md", f"1 + 1 + 3 = {len('5 €'.encode())} bytes"),
    ("02-reading-documents.md", f"12 pages the rule asks for at least {12 // 2 + 1} occurrences"),
    ("03-chunking.md", f"ceil(960 / 160) = {chunk_count(1000, 200, 40)}"),
    ("03-chunking.md", f"1,000 + 5 * 40 = {rounded(1000 + 5 * 40, 0, grouped=True)} tokens, which is 20 % more"),
    ("03-chunking.md", f"ceil(4,950 / 200) = {chunk_count(5000, 250, 50)}"),
    ("03-chunking.md", f"has {400 - 256} tokens that have no influence"),
    ("04-lexical-search.md", f"= ln(1.6) = {rounded(idf(3, 2), 4)}"),
    ("04-lexical-search.md", f"= ln(2.6667) = {rounded(idf(3, 1), 4)}"),
    ("04-lexical-search.md", f"ln(1 + 0.5/3.5) = {rounded(idf(3, 3), 4)}"),
    ("04-lexical-search.md", f"a hundred times is worth {rounded(frequency_factor(100, 1, k1=1.2, b=0.75), 3)} times"),
    ("04-lexical-search.md", f"ln(10) = {rounded(math.log(10), 3)}"),
    *(
        ("04-lexical-search.md", f"* {rounded(factor, 4)} = {rounded(weight * factor, 4)}")
        for weight, factor in (
            (idf(3, 2), frequency_factor(2, 4 / 6, k1=1.2, b=0.75)),
            (idf(3, 2), frequency_factor(1, 6 / 6, k1=1.2, b=0.75)),
            (idf(3, 1), frequency_factor(1, 8 / 6, k1=1.2, b=0.75)),
        )
    ),
    (
        "04-lexical-search.md",
        "is {} for note 1, {} for note 2 and {} for note 3".format(
            *(rounded(1.2 * (0.25 + 0.75 * length / 6), 1) for length in (4, 6, 8))
        ),
    ),
    ("05-dense-embeddings.md", f"sqrt(0.61) = {rounded(math.sqrt(0.61), 4)}"),
    (
        "05-dense-embeddings.md",
        "the vector becomes ({}, {}, {})".format(*(rounded(x / math.sqrt(0.61), 4) for x in (0.6, 0.3, 0.4))),
    ),
    (
        "05-dense-embeddings.md",
        f"right and the wrong vector is {rounded(cosine((0.6, 0.3, 0.4), (0.5, 0.45, 0.4)), 4)}",
    ),
    ("05-dense-embeddings.md", f"two unit vectors is {rounded(2 - 2 * 8 / 9, 4)}"),
    ("05-dense-embeddings.md", f"and the distance {rounded(math.sqrt(2 - 2 * 8 / 9), 4)}"),
    ("05-dense-embeddings.md", f"0.88 / 127 = {rounded(0.88 / 127, 6)}"),
    ("05-dense-embeddings.md", "codes are {}, {}, {} and {}".format(*(round(x / (0.88 / 127)) for x in X_VECTOR))),
    (
        "05-dense-embeddings.md",
        "they give ({}, {}, {}, {})".format(*(rounded(round(x / (0.88 / 127)) * 0.88 / 127, 4) for x in X_VECTOR)),
    ),
    (
        "05-dense-embeddings.md",
        f"restored vector is {rounded(cosine(X_VECTOR, tuple(round(x / (0.88 / 127)) for x in X_VECTOR)), 6)}",
    ),
    ("05-dense-embeddings.md", f"24 / 25 = {rounded(cosine((3, 4), (4, 3)), 2)}"),
    ("06-boolean-search.md", f"that is {rounded(100 * 0.6**5, 1)} % of them"),
    ("06-boolean-search.md", f"10 * 20 = {10 * math.ceil(math.log2(1_000_000))} steps"),
    ("07-fusion.md", f"mean 0.70 and the standard deviation {rounded(statistics.pstdev(DENSE.values()), 4)}"),
    ("07-fusion.md", f"mean 10.0 and the standard deviation {rounded(statistics.pstdev(LEXICAL.values()), 4)}"),
    ("07-fusion.md", f"(9 - 5) / (18 - 5) = {rounded(minmax(LEXICAL)['A'], 4)}"),
    ("07-fusion.md", f"(0.70 - 0.54) / 0.26 = {rounded(minmax(DENSE)['C'], 4)}"),
    ("07-fusion.md", f"(0.80 - 0.70) / 0.0990 = {rounded(Z['dense']['A'], 4)}"),
    ("07-fusion.md", f"(9 - 10) / 4.8477 = {rounded(Z['lexical']['A'], 4)}"),
    ("07-fusion.md", f"1/61 + 1/62 = {rounded(1 / 61 + 1 / 62, 5)}"),
    ("07-fusion.md", f"1/63 + 1/61 = {rounded(1 / 63 + 1 / 61, 5)}"),
    ("07-fusion.md", f"first place is worth {rounded(70 / 61, 2)} times the tenth"),
    ("07-fusion.md", f"it would be worth {rounded(11 / 2, 1)} times"),
    (
        "07-fusion.md",
        "A gets {} and {}, together".format(
            *(rounded(distribution_based(scores)["A"], 4) for scores in (DENSE, LEXICAL))
        ),
    ),
    ("07-fusion.md", f"at w = {rounded((1 - 4 / 13) / (1 - 4 / 13 + 1 - 8 / 13), 4)}"),
    ("07-fusion.md", f"1/63 + 1/70 = {rounded(1 / 63 + 1 / 70, 5)}"),
    ("07-fusion.md", f"one half and one half it gets {rounded((1 + 4 / 13) / 2, 4)}"),
    ("07-fusion.md", f"1 from the lexical one, together {rounded((8 / 13 + 1) / 2, 4)}"),
    ("07-fusion.md", f"together {rounded(Z['dense']['A'] + Z['lexical']['A'], 4)}. For C: 0 and"),
    ("07-fusion.md", f"0 and {rounded(Z['lexical']['C'], 4)}, together {rounded(Z['lexical']['C'], 4)}"),
    ("07-fusion.md", f"did return, gets {rounded(Z['dense']['D'], 4)}"),
    ("07-fusion.md", f"together {rounded(1 + (Z['dense']['A'] + Z['lexical']['A']) / 6, 4)}; C gets 0.5"),
    (
        "07-fusion.md",
        f"0.5 and {rounded(0.5 + Z['lexical']['C'] / 6, 4)}, together {rounded(1 + Z['lexical']['C'] / 6, 4)}",
    ),
    ("planning.md", f"1 - (1 - 0.7)^3 = {rounded(1 - 0.3**3, 3)}"),
    ("reranking.md", f"0.92 + 0.77 = {rounded(0.92 + 0.77, 2)}"),
    ("reranking.md", f"question tokens it is {rounded((0.92 + 0.77) / 2, 3)}"),
    ("reranking.md", f"200 * 384 * 4 = {200 * 384 * 4:,} bytes"),
    ("reranking.md", f"{384 // 8} bytes a token, which is {200 * 384 // 8:,} bytes"),
    ("reranking.md", f"They differ in {(0b10110010 ^ 0b10011010).bit_count()} places"),
    ("reranking.md", f"1 - 4/8 = {rounded(1 - 2 * (0b10110010 ^ 0b10011010).bit_count() / 8, 1)}"),
    ("reranking.md", f"45 degrees, whose cosine is {rounded(math.cos(math.pi * 2 / 8), 4)}"),
    ("reranking.md", f"0.3 * 0.64 + 0.7 * 0.8 = {rounded(0.3 * 0.64 + 0.7 * 0.8, 3)}"),
    ("reranking.md", f"mark 6 gets {rounded(0.3 * 0.90 + 0.7 * 0.6, 3)}"),
    ("reranking.md", f"300 / 20 = {300 // 20} candidates"),
    ("reranking.md", f"0.56 - 0.285 = {rounded(0.7 * 0.80 - 0.3 * 0.95, 3)}"),
    ("reranking.md", f"0.49 - 0.06 = {rounded(0.7 * 0.70 - 0.3 * 0.20, 3)}"),
    (
        "measuring.md",
        f"Precision at 5 is 2/5 = {rounded(2 / 5, 3)}, and precision at 10 is 3/10 = {rounded(3 / 10, 3)}",
    ),
    ("measuring.md", f"Recall at 5 is 2/4 = {rounded(2 / 4, 3)}, and recall at 10 is 3/4 = {rounded(3 / 4, 3)}"),
    ("measuring.md", f"3 + {rounded(2 / math.log2(3), 4)} + 0.5 + {rounded(1 / math.log2(5), 4)} = "),
    ("measuring.md", f"2 * 0.5 + {rounded(1 / math.log2(7), 4)} = "),
    ("measuring.md", f"2 * 0.3 * 0.75 / 1.05 = {rounded(2 * 0.3 * 0.75 / (0.3 + 0.75), 4)}"),
    ("measuring.md", f"(1/1 + 2/3 + 3/6 + 0) / 4 = {rounded((1 + 2 / 3 + 3 / 6) / 4, 4)}"),
    ("measuring.md", f"(1 + 0.25 + 0) / 3 = {rounded((1 + 1 / 4) / 3, 4)}"),
    ("measuring.md", f"0.3562 = {rounded(discounted_gain(GRADES), 4)}"),
    ("measuring.md", f"0.4307 = {rounded(discounted_gain(BEST_GRADES), 4)}"),
    ("measuring.md", f"therefore {rounded(discounted_gain(GRADES) / discounted_gain(BEST_GRADES), 4)}"),
    (
        "measuring.md",
        f"{rounded(discounted_gain(exponential(GRADES)), 4)} / "
        f"{rounded(discounted_gain(exponential(BEST_GRADES)), 4)} = "
        f"{rounded(discounted_gain(exponential(GRADES)) / discounted_gain(exponential(BEST_GRADES)), 4)}",
    ),
    ("measuring.md", f"recall is 2/2, and F1 is {rounded(2 * 0.5 * 1 / 1.5, 4)}"),
    ("measuring.md", f"citation precision is {rounded(6 / 8, 2)} and citation recall is {rounded(4 / 5, 2)}"),
    (
        "measuring.md",
        f"declines {rounded(100 * 34 / 40, 0)} % of what it should decline and {rounded(100 * 8 / 160, 0)} %",
    ),
    ("measuring.md", f"both sides, is {rounded(2 * sum(math.comb(20, k) for k in range(14, 21)) / 2**20, 4)}"),
    ("measuring.md", f"With 15 wins it is {rounded(2 * sum(math.comb(20, k) for k in range(15, 21)) / 2**20, 4)}"),
    ("measuring.md", f"(0.8 - 0.5) / (1 - 0.5) = {rounded((0.8 - 0.5) / 0.5, 1)}"),
    (
        "answering.md",
        f"(0.4700 + 0.9808) / 1.9208 = {rounded((idf(3, 2) + idf(3, 1)) / (2 * idf(3, 2) + idf(3, 1)), 4)}",
    ),
    ("answering.md", f"reaches only {rounded(2 * idf(3, 2) / (2 * idf(3, 2) + idf(3, 1)), 4)}"),
    ("answering.md", f"4,096 - 300 - 500 = {4096 - 300 - 500:,} tokens"),
    ("answering.md", f"{(4096 - 300 - 500) // 220} passages fit, since 3,296 / 220 = {rounded(3296 / 220, 2)}"),
    ("answering.md", f"above 2/3 = {rounded(2 / 3, 3)}"),
    ("verification.md", f"(2 + 0.5 * 1) / 4 - 0.1 * 1 = {rounded(confidence(2, 1, 1), 3)}"),
    ("verification.md", f"sum is {rounded(1 + 0.1, 1)} and is clamped to 1"),
    ("verification.md", f"it is {rounded(1 / 6 - 0.5, 3)} and is clamped to 0"),
    ("operations.md", f"64 bits it is about {rounded(10_000_000**2 / 2**65, 7)}"),
    ("operations.md", f"gives {rounded(1_000_000**2 / 2**33, 0)} expected collisions"),
    ("operations.md", f"The mean is {rounded(statistics.fmean(LATENCIES_MS), 1)} ms"),
    ("operations.md", f"p50 is {LATENCIES_MS[math.ceil(0.50 * 20) - 1]} ms"),
    ("operations.md", f"p95 is {LATENCIES_MS[math.ceil(0.95 * 20) - 1]} ms"),
    ("operations.md", f"larger than {sum(t < statistics.fmean(LATENCIES_MS) for t in LATENCIES_MS)} of the 20"),
    ("operations.md", ", ".join(str(t) for t in LATENCIES_MS)),
]


@pytest.mark.parametrize(("name", "statement"), STATEMENTS, ids=lambda value: str(value)[:60])
def test_a_worked_number_in_the_text_is_what_its_formula_gives(name: str, statement: str) -> None:
    assert statement in read(name)


# (file, first head cell, second head cell, row of cells -> the row as it must be printed, rows at least)
TableRule = tuple[str, str, str, Callable[[list[str]], list[str]]]


def survival_row(row: list[str]) -> list[str]:
    share = number(row[0]) / 100
    return [row[0], *(rounded(100 * share**steps, 1) for steps in (2, 3, 5, 8))]


def paper_row(row: list[str]) -> list[str]:
    width, height = number(row[1]), number(row[2])
    return [*row[:3], *(rounded(side / 25.4 * 72, 0) for side in (width, height))]


def overlap_row(row: list[str]) -> list[str]:
    window, overlap = int(row[0]), int(row[1])
    chunks = chunk_count(10_000, window, overlap)
    stored = 10_000 + (chunks - 1) * overlap
    return [*row[:2], str(chunks), f"{stored:,}", rounded((stored - 10_000) / 100, 1)]


def splitter_row(row: list[str]) -> list[str]:
    gold = set(range(100, 220))
    got: set[int] = set()
    for start, end in re.findall(r"(\d+) to (\d+)", row[0]):
        got |= set(range(int(start), int(end)))
    hit = len(got & gold)
    ratios = (hit / len(gold), hit / len(got), hit / len(got | gold))
    return [row[0], str(len(got)), str(hit), *(rounded(ratio, 3) for ratio in ratios)]


def idf_row(row: list[str]) -> list[str]:
    containing = int(number(row[0]))
    return [row[0], rounded(idf(10_000, containing), 3), rounded(math.log(10_000 / containing), 3)]


def saturation_row(row: list[str]) -> list[str]:
    return [row[0], *(rounded(frequency_factor(number(row[0]), 1, k1=k1, b=0.75), 3) for k1 in (0.5, 1.2, 2.0))]


def length_row(row: list[str]) -> list[str]:
    return [row[0], *(rounded(frequency_factor(1, number(row[0]), k1=1.2, b=b), 3) for b in (0, 0.4, 0.75, 1))]


def parameters_row(row: list[str]) -> list[str]:
    k1, b = (float(value) for value in re.findall(r"= ([\d.]+)", row[0]))
    scores = [
        weight * frequency_factor(tf, length / 6, k1=k1, b=b)
        for weight, tf, length in ((idf(3, 2), 2, 4), (idf(3, 2), 1, 6), (idf(3, 1), 1, 8))
    ]
    order = ", ".join(str(1 + at) for at in sorted(range(3), key=lambda at: -scores[at]))
    if math.isclose(scores[0], scores[1]):
        order = "3, then 1 and 2 tie"
    return [row[0], *(rounded(score, 4) for score in scores), order]


def cosine_row(row: list[str]) -> list[str]:
    vectors = {"a": (1.0, 2.0, 2.0), "b": (2.0, 1.0, 2.0), "c": (4.0, 0.0, -3.0)}
    left, right = (vectors[name] for name in row[0].split(" and "))
    dot = sum(x * y for x, y in zip(left, right, strict=True))
    return [
        row[0],
        rounded(dot, 0),
        rounded(math.hypot(*left) * math.hypot(*right), 0),
        rounded(cosine(left, right), 4),
    ]


def memory_row(row: list[str]) -> list[str]:
    return [row[0], *(rounded(int(row[0].split()[0]) * size / 1000, 3) for size in (4, 2, 1, 1 / 8))]


def scale_row(row: list[str]) -> list[str]:
    scale = 0.88 / 127 if row[0].startswith("shared") else max(map(abs, Y_VECTOR)) / 127
    codes = [round(value / scale) for value in Y_VECTOR]
    restored = ", ".join(rounded(code * scale, 4) for code in codes)
    label = row[0].split(", ")[0]
    return [
        f"{label}, {rounded(scale, 6)}",
        ", ".join(map(str, codes)),
        restored,
        rounded(cosine(Y_VECTOR, tuple(float(code) for code in codes)), 4),
    ]


def boolean_row(row: list[str]) -> list[str]:
    postings = {"lamp": {1, 3, 4, 8, 11}, "storm": {2, 3, 8, 9, 12}, "repair": {3, 5, 8, 10}}
    python = row[0].lower()
    found = [note for note in range(1, 13) if eval(python, {word: note in notes for word, notes in postings.items()})]
    return [row[0], ", ".join(map(str, found)), str(len(found))]


def rank_row(row: list[str]) -> list[str]:
    return [row[0], *(rounded(1 / (k + int(row[0])), 5) for k in (1, 10, 60))]


def fusion_row(row: list[str]) -> list[str]:
    name = row[0]

    def total(method: Callable[[dict[str, float]], dict[str, float]]) -> float:
        return method(DENSE).get(name, 0.0) + method(LEXICAL).get(name, 0.0)

    lists = (name in DENSE) + (name in LEXICAL)
    return [
        name,
        rounded(total(minmax) / 2, 4),
        rounded(total(minmax) * lists, 4),
        rounded(total(zscore), 4),
        rounded(total(reciprocal_ranks), 5),
        rounded(total(distribution_based), 4),
    ]


def weight_row(row: list[str]) -> list[str]:
    weight = number(row[0])
    sums = {name: weight * minmax(DENSE)[name] + (1 - weight) * minmax(LEXICAL)[name] for name in "AC"}
    return [row[0], rounded(sums["A"], 4), rounded(sums["C"], 4), max(sums, key=lambda name: sums[name])]


def maxsim_row(row: list[str]) -> list[str]:
    return [*row[:4], rounded(max(map(number, row[1:4])), 2)]


def logistic_row(row: list[str]) -> list[str]:
    return [row[0], rounded(1 / (1 + math.exp(-number(row[0]))), 4)]


def three_arms_row(row: list[str]) -> list[str]:
    return [*row[:4], rounded(sum(map(number, row[1:4])), 2)]


def interval_row(row: list[str]) -> list[str]:
    error = 0.30 / math.sqrt(number(row[0]))
    return [row[0], rounded(error, 4), rounded(1.96 * error, 4)]


def confidence_row(row: list[str]) -> list[str]:
    supported, partial, unsupported = (int(cell) for cell in row[:3])
    total = supported + partial + unsupported
    share = (supported + 0.5 * partial) / total
    return [*row[:3], str(total), rounded(share, 4), rounded(confidence(supported, partial, unsupported), 3)]


def sizing_row(row: list[str]) -> list[str]:
    sizes = {"dense vector, fp32": 384 * 4, "dense vector, int8": 384, "token codes, 1 bit a dimension": 200 * 384 // 8}
    size = sizes.get(row[0], 1000)
    return [row[0], f"{size:,}", rounded(size * 100_000 / 1_000_000, 1)]


TABLE_RULES: list[TableRule] = [
    ("01-answering-from-documents.md", "Success of each step", "2 steps", survival_row),
    ("02-reading-documents.md", "Format", "Width (mm)", paper_row),
    ("03-chunking.md", "Chunk size (tokens)", "Overlap (tokens)", overlap_row),
    ("03-chunking.md", "Splitter", "Retrieved", splitter_row),
    ("04-lexical-search.md", "Documents with the term", "BM25 idf", idf_row),
    ("04-lexical-search.md", "tf", "k1 = 0.5", saturation_row),
    ("04-lexical-search.md", "dl / avgdl", "b = 0", length_row),
    ("04-lexical-search.md", "Parameters", "Note 1", parameters_row),
    ("05-dense-embeddings.md", "Pair", "Dot product", cosine_row),
    ("05-dense-embeddings.md", "Vector size", "fp32 (GB)", memory_row),
    ("05-dense-embeddings.md", "Scale", "Codes", scale_row),
    ("06-boolean-search.md", "Question", "Notes found", boolean_row),
    ("07-fusion.md", "Rank", "k = 1", rank_row),
    ("07-fusion.md", "Chunk", "Min-max", fusion_row),
    ("07-fusion.md", "Dense weight", "A", weight_row),
    ("reranking.md", "Question token", "passage token 1", maxsim_row),
    ("reranking.md", "Logit", "p", logistic_row),
    ("reranking.md", "Candidate", "Dense", three_arms_row),
    ("measuring.md", "Questions", "Standard error", interval_row),
    ("verification.md", "Supported", "Partial", confidence_row),
    ("operations.md", "Part", "Bytes a chunk", sizing_row),
]


@pytest.mark.parametrize(
    ("name", "first", "second", "expected"), TABLE_RULES, ids=lambda v: getattr(v, "__name__", str(v))
)
def test_each_row_of_a_worked_table_is_what_its_formula_gives(
    name: str, first: str, second: str, expected: Callable[[list[str]], list[str]]
) -> None:
    rows = table(name, first, second)
    assert len(rows) >= 2
    assert rows == [expected(row) for row in rows]


def test_the_two_lists_of_the_fusion_chapter_are_the_ones_that_are_fused() -> None:
    rows = table("07-fusion.md", "Rank", "Dense arm")
    assert {row[1]: number(row[2]) for row in rows} == DENSE
    assert {row[3]: number(row[4]) for row in rows} == LEXICAL


def test_the_z_scores_of_the_reranking_table_average_to_zero_in_each_arm() -> None:
    rows = table("reranking.md", "Candidate", "Dense")
    for column in (1, 2, 3):
        assert sum(number(row[column]) for row in rows) == pytest.approx(0.0, abs=1e-9)


def test_the_discounts_and_gains_of_the_ndcg_example_stand_in_its_table() -> None:
    discounts, gains = table("measuring.md", "Rank", "1")
    assert discounts[1:] == [rounded(1 / math.log2(rank + 1), 4) for rank in range(1, 11)]
    assert [number(cell) for cell in gains[1:]] == GRADES


class TableCells(html.parser.HTMLParser):
    """Collects the rows of cell texts of every table of a page, by caption."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: dict[str, list[list[str]]] = {}
        self.caption, self.inside = "", ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "tr":
            self.rows.setdefault(self.caption, []).append([])
        if tag in {"td", "th", "caption"}:
            self.inside = tag
            if tag == "caption":
                self.caption = ""
            else:
                self.rows[self.caption][-1].append("")

    def handle_endtag(self, tag: str) -> None:
        if tag == self.inside:
            self.inside = ""

    def handle_data(self, data: str) -> None:
        if self.inside == "caption":
            self.caption += data
        elif self.inside:
            self.rows[self.caption][-1][-1] += data


def html_table(name: str) -> dict[str, list[float]]:
    """Row label -> its numbers, of the table of approaches.html whose caption begins with this name."""
    page = TableCells()
    page.feed((DOCUMENTS / "approaches.html").read_text(encoding="utf-8"))
    (rows,) = (rows for caption, rows in page.rows.items() if caption.startswith(name))
    return {row[0]: [number(cell) for cell in row[1:]] for row in rows[1:]}


def test_the_work_table_of_the_html_page_is_arithmetic() -> None:
    rows = html_table("Table H.2")
    assert all(candidates * work == total for candidates, work, total in rows.values())
    assert rows["Exact scan over all vectors"] == [1_000_000, 384, 384_000_000]
    assert rows["Late interaction in full precision"][1] == 32 * 200 * 384
    assert rows["Late interaction with one-bit codes"][1] == 32 * 200 * 384 / 64


def test_the_cross_encoder_table_of_the_html_page_is_arithmetic() -> None:
    rows, base = html_table("Table H.3"), 50 * 32 * 200 * 6
    work = {
        "Cross-encoder, 6 layers": 6 * 12 * 384**2 * 250 * 50,
        "Late interaction in full precision": 50 * 32 * 200 * 384,
    }
    for label, total in work.items():
        assert rows[label] == [total, total / base]


def test_the_memory_table_of_the_html_page_is_arithmetic() -> None:
    rows = html_table("Table H.4")
    assert all(size * 1_000_000 / 1e9 == pytest.approx(total) for size, total in rows.values())
    assert [size for size, _ in rows.values()] == [384 * 4, 384, 48, 32 * 4, 200 * 384 * 4, 200 * 384 / 8, 120 * 8]


def test_the_glossary_points_only_to_its_own_terms_and_agrees_with_the_table_of_papers() -> None:
    glossary = json.loads((DOCUMENTS / "glossary.json").read_text(encoding="utf-8"))
    terms = {entry["term"] for entry in glossary}
    assert len(terms) == len(glossary) >= 50
    assert {"term", "definition", "formula", "see_also", "year", "paper"} == set().union(*glossary)
    assert [(e["term"], other) for e in glossary for other in e["see_also"] if other not in terms] == []
    assert all((entry["year"] is None) == (entry["paper"] is None) for entry in glossary)
    years = {row[0]: int(row[2]) for row in table("08-appendix.md", "Method", "Authors")}
    same = {
        "Inverse document frequency": "IDF",
        "BM25 at TREC-3": "BM25",
        "CombSUM, CombMNZ": "CombMNZ",
        "BM25F": "BM25F",
        "Discounted cumulated gain": "nDCG",
        "Reciprocal rank fusion": "RRF",
        "HNSW": "HNSW",
        "MiniLM": "MiniLM",
        "Product quantisation": "product quantisation",
        "ColBERT": "late interaction",
        "SPLADE": "SPLADE",
        "Hypothetical document embeddings": "HyDE",
        "Distribution-based score fusion": "DBSF",
        "Corrective retrieval (CRAG)": "CRAG",
        "Passage reranking with BERT": "cross-encoder",
        "Suffix stripping (Porter stemmer)": "stemming",
        "Dense passage retrieval": "dense embedding",
    }
    by_term = {entry["term"]: entry["year"] for entry in glossary}
    assert {method: by_term[term] for method, term in same.items()} == {method: years[method] for method in same}


# The PDF and the questions.


@functools.cache
def pdf_text(path: Path) -> str:
    """The words of a PDF, line-end hyphens undone, white space evened out."""
    pdfium = pytest.importorskip("pypdfium2", reason="pypdfium2 reads the handbook; install the package")
    document = pdfium.PdfDocument(path)
    text = " ".join(page.get_textpage().get_text_range() for page in document)
    return " ".join(re.sub("\ufffe\\s*|\u00ad\\s*|\x02\\s*", "", text).split())


@pytest.fixture(scope="module")
def builder() -> ModuleType:
    pytest.importorskip("reportlab", reason="reportlab builds the handbook; pip install reportlab pyphen")
    pytest.importorskip("pyphen", reason="pyphen hyphenates the handbook; pip install reportlab pyphen")
    path = DEMO.parent / "scripts" / "build_handbook.py"
    specification = importlib.util.spec_from_file_location("build_handbook", path)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules[specification.name] = module  # dataclasses look their module up by name
    specification.loader.exec_module(module)
    return module


def test_two_builds_give_the_same_bytes_and_the_text_of_the_committed_pdf(builder: ModuleType, tmp_path: Path) -> None:
    for name in ("one.pdf", "two.pdf"):
        builder.build(DEMO / "source", tmp_path / name)
    assert (tmp_path / "one.pdf").read_bytes() == (tmp_path / "two.pdf").read_bytes()
    assert pdf_text(tmp_path / "one.pdf") == pdf_text(HANDBOOK), "run scripts/build_handbook.py"


def test_the_pdf_has_pages_bookmarks_and_page_numbers_as_a_reader_expects() -> None:
    pdfium = pytest.importorskip("pypdfium2", reason="pypdfium2 reads the handbook; install the package")
    document = pdfium.PdfDocument(HANDBOOK)
    assert 25 <= len(document) <= 35
    assert HANDBOOK.stat().st_size < 400_000
    assert [round(side) for side in document[0].get_size()] == [595, 842]
    for index in range(1, len(document)):
        assert f"Page {index + 1}" in document[index].get_textpage().get_text_range()
    titles = {bookmark.get_title(): bookmark.level for bookmark in document.get_toc()}
    headings = re.findall(
        r"^(#{1,2}) (.+)$",
        "\n".join(path.read_text(encoding="utf-8") for path in sorted((DEMO / "source").glob("*.md"))),
        flags=re.MULTILINE,
    )
    assert titles == {title: len(marks) - 1 for marks, title in headings}


@pytest.mark.parametrize("chapter", sorted(path.name for path in (DEMO / "source").glob("*.md")))
def test_each_table_row_of_the_source_is_one_line_of_the_pdf(chapter: str) -> None:
    text = pdf_text(HANDBOOK)
    rows = [" ".join(" ".join(row).replace("`", "").split()) for rows in tables(chapter).values() for row in rows]
    assert [row for row in rows if row not in text] == []


@pytest.mark.parametrize(
    ("chapter", "reason"),
    [
        ("# One\n\n| a | b |\n|---|---|\n| 1 | 2 |\n", "no caption"),
        ("# One\n\n**Table 1.** X.\n\n| a | b |\n|---|---|\n| 1 |\n", "differ in length"),
        ("# One\n\n**Table 1.** X.\n\nText.\n", "directly before its table"),
        ("# One\n\nA snowman \u2603.\n", "write it in words"),
        ("# One\n\n![nothing](Legend.)\n", "no drawing is called 'nothing'"),
    ],
)
def test_a_chapter_that_cannot_be_set_is_refused_with_file_line_and_remedy(
    builder: ModuleType, tmp_path: Path, chapter: str, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "01.md").write_text(chapter, encoding="utf-8")
    assert builder.main(["--source", str(tmp_path), "--out", str(tmp_path / "out.pdf")]) == 1
    message = capsys.readouterr().err
    assert reason in message
    assert "01.md:" in message
    assert not (tmp_path / "out.pdf").exists()


def expectations() -> list[dict[str, str | None]]:
    loaded: list[dict[str, str | None]] = json.loads((DEMO / "expected.json").read_text(encoding="utf-8"))
    return loaded


def test_the_expectations_cover_the_questions_in_their_order() -> None:
    lines = (DEMO / "questions.txt").read_text(encoding="utf-8").splitlines()
    questions = [line for line in lines if line.strip() and not line.startswith("#")]
    assert questions == [entry["question"] for entry in expectations()]
    assert sum(entry["file"] is None for entry in expectations()) == 1
    assert {Path(str(entry["file"])).suffix for entry in expectations() if entry["file"]} == {
        ".pdf",
        ".md",
        ".json",
        ".html",
    }


@pytest.mark.parametrize("entry", expectations(), ids=lambda entry: str(entry["file"]))
def test_the_expected_string_stands_in_the_file_that_answers_the_question(entry: dict[str, str | None]) -> None:
    if entry["file"] is None:
        everything = pdf_text(HANDBOOK) + "".join(
            path.read_text(encoding="utf-8") for path in DOCUMENTS.iterdir() if path.suffix != ".pdf"
        )
        assert not re.search(r"\b(tax|Denmark|Danish|printed books)\b", everything)
        return
    path = DOCUMENTS / entry["file"]
    text = pdf_text(path) if path.suffix == ".pdf" else " ".join(path.read_text(encoding="utf-8").split())
    assert str(entry["contains"]) in text
