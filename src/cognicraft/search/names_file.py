"""What the names of a workspace teach, kept in a file, so that a new process need not learn it again.

Takes: `Names`, or the path of such a file. Returns: the same `Names`, or None where the file is of no use.
Method: a line of JSON that says what the file is (format, stamp, digest of the rest), then the columns of `Labels` as
    JSON. A list of lists is kept as the length of each and all of their numbers in a row. Nothing in the file is run
    when it is read, and every number that points somewhere is compared with what it points to. It is written beside
    and then moved into place.
Cost: reading takes a twentieth of learning: half a millisecond for 20 documents, 50 for 10,000.
What can go wrong: the file does not know the documents. Whoever changes them deletes it first; whoever changes how
    names are read raises `FORMAT`, or gives another stamp.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import threading
from array import array
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, chain
from pathlib import Path
from typing import Any

from cognicraft.search.labels import Labels, Terms
from cognicraft.search.names import Names
from cognicraft.search.periods import Dated, Period

FORMAT = 1
"""To be raised whenever the file, or what is learned from a name, changes."""

_BAD = (ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError, RecursionError)


def save(names: Names, path: Path, *, stamp: str) -> bool:
    """Write what was learned, whole or not at all; False where the folder cannot be written to.

    stamp: of all that decides how words are cut, so that names of another tokenizer are not taken for these.
    """
    body = _encoded(_written(names))
    head = _encoded({"format": FORMAT, "stamp": stamp, "digest": _digest(body)})
    beside = path.with_name(f"{path.name}.{os.getpid()}.{threading.get_ident()}.part")
    try:
        beside.write_bytes(head + b"\n" + body)
        beside.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            beside.unlink()
        return False
    return True


def load(path: Path, *, terms: Terms, stamp: str) -> Names | None:
    """What was saved with this stamp; None where there is none, it is damaged, or of another format or stamp.

    terms: a word's analysed forms, as when the names were learned.
    """
    try:
        first, _, body = path.read_bytes().partition(b"\n")
        head = json.loads(first)
        if (head["format"], head["stamp"], head["digest"]) != (FORMAT, stamp, _digest(body)):
            return None
        return _read(json.loads(body.decode("utf-8", "surrogatepass")), terms)
    except (OSError, *_BAD):
        return None


def _digest(body: bytes) -> str:
    return hashlib.blake2b(body, digest_size=16).hexdigest()


def _encoded(value: object) -> bytes:
    # A file name that is no Unicode comes back as it was.
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")


def _written(names: Names) -> dict[str, Any]:
    labels = names.labels
    periods = {one: number for number, one in enumerate(sorted(labels.by_period))}
    words: dict[Sequence[str], int] = {}
    for word in chain.from_iterable(labels.readings):
        words.setdefault(word, len(words))
    return {
        "key": names.key,
        "ids": labels.ids,
        "sources": labels.sources,
        "dated": labels.dated,
        "short": labels.short,
        "document": labels.document,
        "reading": labels.reading,
        "weight": labels.weight,
        "words": list(words),
        "readings": _in_a_row([words[word] for word in reading] for reading in labels.readings),
        "terms": list(labels.postings),
        "postings": _in_a_row(labels.postings.values()),
        "frequency": [labels.frequency[term] for term in labels.postings],
        "periods": [[one.year, one.half, one.quarter, one.month, one.day] for one in periods],
        "dates_of_periods": _in_a_row(labels.by_period[one] for one in periods),
        "dates": _in_a_row([periods[one] for one in level] for date in labels.dates for level in date.levels),
        "aliases": names.aliases,
    }


def _read(kept: Mapping[str, Any], terms: Terms) -> Names:
    """Raises one of `_BAD` where something is not as `_written` left it."""
    ids, sources, held = _texts(kept["ids"]), _texts(kept["sources"]), _texts(kept["terms"])
    document, reading, weight = kept["document"], kept["reading"], kept["weight"]
    _require(len(ids) == len(sources) == len(kept["dated"]))
    _require(len(document) == len(reading) == len(weight) and set(map(type, weight)) <= {float})
    words = [tuple(_texts(word)) for word in kept["words"]]
    readings = [tuple([words[one] for one in row]) for row in _lists(kept["readings"], below=len(words))]
    postings, frequency = _lists(kept["postings"], below=len(document)), kept["frequency"]
    _require(len(held) == len(postings) == len(frequency))
    periods = [Period(*_numbers(parts, below=10_000)) for parts in kept["periods"]]
    levels = [frozenset(periods[one] for one in level) for level in _lists(kept["dates"], below=len(periods))]
    dates = [Dated(tuple(levels[at : at + 4])) for at in range(0, len(levels), 4)]
    by_period = _lists(kept["dates_of_periods"], below=len(dates))
    _require(len(periods) == len(by_period))
    labels = Labels(
        ids=ids,
        sources=sources,
        dated=_numbers(kept["dated"], below=len(dates)),
        short=bool(kept["short"]),
        document=_numbers(document, below=len(ids)),
        reading=_numbers(reading, below=len(readings)),
        weight=weight,
        readings=readings,
        postings=dict(zip(held, postings, strict=True)),
        frequency=dict(zip(held, _numbers(frequency, below=len(ids) + 1), strict=True)),
        dates=dates,
        by_period=dict(zip(periods, by_period, strict=True)),
    )
    aliases = {
        _text(word): tuple((_text(name), float(strength)) for name, strength in stands_for)
        for word, stands_for in kept["aliases"].items()
    }
    return Names(labels, aliases, terms=terms, key=_text(kept["key"]))


# ── columns ───────────────────────────────────────────────────────────────────────────────────────────────────


def _in_a_row(lists: Iterable[Sequence[int]]) -> list[list[int]]:
    lists = list(lists)
    return [[len(one) for one in lists], list(chain.from_iterable(lists))]


def _lists(row: Sequence[Sequence[int]], *, below: int) -> list[list[int]]:
    lengths, numbers = map(list, row)
    _numbers(numbers, below=below)
    ends = list(accumulate(_numbers(lengths, below=len(numbers) + 1)))
    _require((ends[-1] if ends else 0) == len(numbers))
    return [numbers[end - length : end] for end, length in zip(ends, lengths, strict=True)]


def _numbers(values: list[int], *, below: int) -> list[int]:
    """Raises TypeError, OverflowError or ValueError where they are not whole numbers from 0 to below a bound."""
    # An array takes nothing else, and no negative number.
    _require(not values or max(array("Q", values)) < below)
    return values


def _texts(values: Iterable[str]) -> list[str]:
    values = list(values)
    "".join(values)  # raises TypeError for anything else
    return values


def _text(value: str) -> str:
    _require(isinstance(value, str))
    return value


def _require(holds: bool) -> None:
    if not holds:
        raise ValueError("not a file of names")
