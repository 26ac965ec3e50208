"""A folder of test questions in the shape of BEIR.

    corpus.jsonl         {"_id", "title", "text"} a line; `title` may be missing
    queries.jsonl        {"_id", "text"} a line; any other field is kept
    qrels/SPLIT.tsv      query id, document id, grade, divided by tabs, after one header line
    unanswerable.jsonl   like queries.jsonl, optional: questions that the corpus does not answer

Takes: the folder and the split's name.
Returns: a `Dataset`: questions and judgements in memory, documents read from disk one at a time.
Source: the file format of Thakur et al., "BEIR", NeurIPS Datasets and Benchmarks 2021.
Cost: one pass over queries and judgements; each `documents()` is one pass over the corpus and keeps its ids
only.
What can go wrong: a file that is absent or a line that is broken ends in a UsageError that names file, line
    and reason. A question without judgements in the split is skipped and counted; so is a judged one without
    text. A judged document that the corpus lacks stays in the judgements: it cannot be found, and recall
    should say so.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cognicraft.errors import UsageError
from cognicraft.records import Document

_SHAPE = "A dataset folder holds corpus.jsonl, queries.jsonl and qrels/SPLIT.tsv (the shape of BEIR)."


@dataclass(frozen=True, slots=True)
class Dataset:
    """Questions with judgements over a corpus.

    queries: question id -> text, in the order of the file, only those that the split judges.
    qrels: question id -> document id -> grade (0 or less: not relevant), for exactly these questions.
    extra: question id -> its other fields in queries.jsonl (a reference answer, for example).
    unanswerable: question id -> text.
    skipped: questions in the file that the split does not judge.
    without_text: questions that the split judges and the file lacks.
    """

    name: str
    folder: Path
    split: str
    queries: Mapping[str, str]
    qrels: Mapping[str, Mapping[str, int]]
    extra: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    unanswerable: Mapping[str, str] = field(default_factory=dict)
    skipped: int = 0
    without_text: int = 0

    def documents(self) -> Iterator[Document]:
        """Every document, in the order of the file, as `Document(source=_id, title=title, text=text)`.

        Raises: UsageError at a broken line or an id that was there before.
        """
        path = self.folder / "corpus.jsonl"
        seen: set[str] = set()
        for number, record in _records(path):
            identifier = _identifier(path, number, record, seen)
            title = record.get("title") or ""
            if not isinstance(title, str):
                raise _broken(path, number, '"title" is not a text')
            yield Document(source=identifier, title=title, text=_text(path, number, record))


def splits(folder: Path) -> list[str]:
    """The names of the splits that a folder has, sorted; none for a folder without judgements."""
    return sorted(path.stem for path in (Path(folder) / "qrels").glob("*.tsv"))


def load(folder: Path, *, split: str = "test") -> Dataset:
    """Read questions and judgements of a folder; the name of the dataset is the folder's.

    Raises: UsageError where the folder is not of the shape above, the split is unknown (it names those there
        are), a line is broken (file, line, reason), or no question of the split is left.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise UsageError(f"The dataset folder {folder} is not there.", remedy=_SHAPE)
    missing = [name for name in ("corpus.jsonl", "queries.jsonl", "qrels") if not (folder / name).exists()]
    if missing:
        raise UsageError(f"The folder {folder} has no {' and no '.join(missing)}.", remedy=_SHAPE)
    known = splits(folder)
    if split not in known:
        remedy = f"There are: {', '.join(known)}." if known else _SHAPE
        raise UsageError(f"The dataset {folder.resolve().name} has no split named {split!r}.", remedy=remedy)

    qrels = _judgements(folder / "qrels" / f"{split}.tsv")
    texts, extra = _questions(folder / "queries.jsonl")
    queries = {identifier: text for identifier, text in texts.items() if identifier in qrels}
    if not queries:
        raise UsageError(
            f"No question in {folder / 'queries.jsonl'} is judged in the split {split!r}.",
            remedy="The first column of the split holds ids of questions, the second ids of documents.",
        )
    unanswerable_path = folder / "unanswerable.jsonl"
    return Dataset(
        name=folder.resolve().name,
        folder=folder,
        split=split,
        queries=queries,
        qrels={identifier: qrels[identifier] for identifier in queries},
        extra={identifier: extra[identifier] for identifier in queries if identifier in extra},
        unanswerable=_questions(unanswerable_path)[0] if unanswerable_path.exists() else {},
        skipped=len(texts) - len(queries),
        without_text=len(qrels) - len(queries),
    )


def _questions(path: Path) -> tuple[dict[str, str], dict[str, dict[str, Any]]]:
    texts: dict[str, str] = {}
    extra: dict[str, dict[str, Any]] = {}
    seen: set[str] = set()
    for number, record in _records(path):
        identifier = _identifier(path, number, record, seen)
        texts[identifier] = _text(path, number, record)
        rest = {name: value for name, value in record.items() if name not in ("_id", "text")}
        if rest:
            extra[identifier] = rest
    return texts, extra


def _judgements(path: Path) -> dict[str, dict[str, int]]:
    qrels: dict[str, dict[str, int]] = {}
    for number, line in _lines(path):
        columns = line.rstrip("\r\n").split("\t")
        if len(columns) != 3:
            raise _broken(path, number, f"{len(columns)} columns, not 3 divided by tabs")
        grade = _grade(columns[2])
        if grade is None:
            if number == 1:
                continue  # the header
            raise _broken(path, number, f"the grade {columns[2]!r} is not a whole number")
        qrels.setdefault(columns[0], {})[columns[1]] = grade
    return qrels


def _grade(column: str) -> int | None:
    try:
        number = float(column)
    except ValueError:
        return None
    return int(number) if number.is_integer() else None


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Lines that are not blank, numbered from 1."""
    number = 0
    try:
        with path.open("rb") as file:
            for number, data in enumerate(file, start=1):
                line = data.decode("utf-8-sig" if number == 1 else "utf-8")
                if line.strip():
                    yield number, line
    except UnicodeDecodeError as error:
        raise _broken(path, number, "it is not UTF-8") from error
    except OSError as error:
        raise UsageError(
            f"The file {path} cannot be read: {error.strerror or error}.", remedy="Check its permissions."
        ) from error


def _records(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in _lines(path):
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise _broken(path, number, f"it is not JSON ({error})") from error
        if not isinstance(record, dict):
            raise _broken(path, number, "it is not a JSON object")
        yield number, record


def _identifier(path: Path, number: int, record: Mapping[str, Any], seen: set[str]) -> str:
    value = record.get("_id")
    if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
        raise _broken(path, number, 'it has no "_id"')
    identifier = str(value)
    if identifier in seen:
        raise _broken(path, number, f"the id {identifier!r} was there before")
    seen.add(identifier)
    return identifier


def _text(path: Path, number: int, record: Mapping[str, Any]) -> str:
    text = record.get("text")
    if not isinstance(text, str):
        raise _broken(path, number, 'it has no "text"')
    return text


def _broken(path: Path, number: int, reason: str) -> UsageError:
    return UsageError(f"Line {number} of {path} cannot be used: {reason}.", remedy="Correct or remove that line.")
