"""What the names in a workspace teach: which documents a question names, by file, folder, title or period.

Takes: the records of the documents once (`Names.learn`), with a few early passages of some; then questions (`fit`).
Returns: a `Named`: the documents with a number from 0 to 1, the words that named them, and the periods asked for.
Method: each document has labels: its file name, its folders, its title, its texts of metadata. A label fits by the
    share of its words that the question says, each counted by how rare it is among the names (a word that all names
    share tells nothing). Words of the text that stand for a word of the names count for it (`aliases.py`). A period
    asked for must agree with the document's own (`periods.py`); "the latest" is the newest of those that fit otherwise.
Cost: learning reads every record once and early passages of at most `SAMPLED_DOCUMENTS`: one to two seconds at 10,000
    documents; what was learned can be kept (`names_file.py`). A question looks at the documents whose names share a
    rare word or a period with it, at most `_MOST_CANDIDATES`, whatever the size of the corpus.
What can go wrong: a document whose title is a common phrase seems to be named by a question that uses the phrase;
    without a period, words count little more than half.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from cognicraft.records import Chunk, DocumentHint, DocumentRecord, digest
from cognicraft.search.aliases import Aliases, Sketch, learn_aliases, sample, sketch
from cognicraft.search.labels import METADATA_WEIGHT, Labels, Terms, Word, bare, read_labels, words_of
from cognicraft.search.periods import Dated, Mention, Period, periods, without

_Fit = tuple[float, tuple[str, ...], tuple[str, ...]]
"""How well a document is named, the words that name it, and those of its best label."""
FirstChunks = Callable[[DocumentRecord], Sequence[Chunk]]

_MOST_CANDIDATES = 1000
_MOST_HINTS = 64
_LEAST_FIT = 0.2
_CLOSE = 0.4
_BESIDES = 0.15
_UNSAID_CODE = 0.15
# Where a document is a passage or two it is found by its own words: that its title is said adds little.
_WORDS_ONLY = 0.6
_WORDS_ONLY_OF_SHORT = 0.3
_OTHER_PERIOD = 0.15

_NEWEST = (
    r"latest|most recent|newest|neueste[nrms]?|letzte[nrms]?|jüngste[nrms]?|dernière?s?|(?:le |la )?plus récente?s?"
    r"|últim[oa]s?|más recientes?|ultim[oa]|più recente|mais recentes?|nieuwste|laatste|senaste|nyeste"
)
_CURRENT = r"current|aktuelle[nrms]?|actuelle?s?|actual(?:es)?|attuale|huidige"
_OLDEST = r"oldest|earliest|älteste[nrms]?|plus ancienne?s?|más antigu[oa]s?|oudste"
_EXTREME = re.compile(
    rf"(?<!\w)(?:(?P<newest>{_NEWEST})|(?P<current>{_CURRENT})|(?P<oldest>{_OLDEST}))(?!\w)(?P<after>(?:\W+\w[\w-]*){{0,3}})",
    re.IGNORECASE,
)
_SPAN_OF_TIME = re.compile(
    r"\b(?:quarter|year|month|week|period|quartal|jahr|monat|woche|trimestre|année|mois|año|mes|anno|mese|ano|mês"
    r"|kwartaal|jaar|maand)s?\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Named:
    """The documents that a question names, best first, and what of it named them.

    asked: periods that it names; extreme: `newest`, `oldest` or "". unmatched: periods that no document of those named
    bears.
    """

    hints: tuple[DocumentHint, ...] = ()
    asked: tuple[Period, ...] = ()
    extreme: str = ""
    unmatched: tuple[Period, ...] = ()


class Names:
    """The names of one state of a workspace. Immutable, thread-safe. `key` changes with the documents.

    labels, aliases: what was learned. terms: a word's analysed forms, the same as when it was learned.
    """

    def __init__(self, labels: Labels, aliases: Aliases, *, terms: Terms, key: str) -> None:
        self.key = key
        self.labels = labels
        self.aliases = aliases
        self._terms = terms
        self._trust = _WORDS_ONLY_OF_SHORT if labels.short else _WORDS_ONLY
        self._documents_of_date: list[list[int]] = [[] for _ in labels.dates]
        for number, date in enumerate(labels.dated):
            self._documents_of_date[date].append(number)

    @classmethod
    def learn(
        cls,
        records: Iterable[DocumentRecord],
        *,
        terms: Terms,
        first_chunks_of: FirstChunks | None = None,
    ) -> Names:
        """From the records of a workspace, failed ones left out.

        terms: a word's analysed forms, stop words left out, as for the lexical arm. first_chunks_of: a few early
        passages of a document; it is asked for at most `SAMPLED_DOCUMENTS`. None: nothing is learned from texts.
        """
        documents = [record for record in records if record.status == "ready"]
        terms_once = cache(terms)  # a few thousand words make up all of the names and passages
        sketches: dict[str, Sketch] = {}
        if first_chunks_of is not None and len(documents) > 1:
            for record in sample(documents):
                sketches[record.id] = sketch(record.title, first_chunks_of(record), terms=terms_once)
        labels, groups = read_labels(documents, terms=terms_once)
        # A word that most names share stands for no group of them.
        telling = {code: ids for code, ids in groups.items() if 2 * len(ids) <= max(2, len(documents))}
        return cls(labels, learn_aliases(telling, sketches), terms=terms, key=cls.key_of(documents))

    @staticmethod
    def key_of(records: Iterable[DocumentRecord]) -> str:
        """A digest of which documents there are, in which revision."""
        return digest(*(f"{record.id}{record.revision}" for record in records if record.status == "ready"))

    def __len__(self) -> int:
        return len(self.labels.ids)

    def source(self, document_id: str) -> str:
        """Where a document comes from; "" for one that is not known."""
        return next(
            (source for one, source in zip(self.labels.ids, self.labels.sources, strict=True) if one == document_id), ""
        )

    @property
    def sources(self) -> list[str]:
        """Where the documents come from, each once, in the order of the records."""
        return list(dict.fromkeys(self.labels.sources))

    def documents_of(self, sources: Collection[str]) -> list[tuple[str, str]]:
        """(id, source) of the documents that come from these."""
        wanted = frozenset(sources)
        documents = zip(self.labels.ids, self.labels.sources, strict=True)
        return [(one, source) for one, source in documents if source in wanted]

    def words(self, text: str) -> list[Word]:
        """The words of a name or a question, stop words and periods left out."""
        return self._cut(without(text, periods(text)))

    def knows(self, word: Word) -> bool:
        """Whether some document's names hold the word."""
        return any(term in self.labels.frequency for term in word.terms)

    def fit(self, question: str) -> Named:
        """Which documents the question names, and how surely."""
        mentions = periods(question)
        asked = _asked(mentions)
        words = self._cut(without(question, mentions))
        said = self._said(words)
        named = self._by_words(said)
        best = max((fit for fit, _, _ in named.values()), default=0.0)
        extreme = self._extreme(question, named=best >= _LEAST_FIT)
        anchored = best > 0 or any(
            self.labels.frequency.get(term, 0) == len(self) > 1 for word in words for term in word.terms
        )
        if best < _LEAST_FIT:
            named = dict.fromkeys(self._by_time(asked, extreme), (0.0, (), ())) | named
            fits = self._dated_only(named, asked, extreme, anchored=anchored)
            unmatched: tuple[Period, ...] = ()
        else:
            named = _comparable(named, best)
            fits, unmatched = self._named_and_dated(named, asked, extreme)
        spans = tuple(dict.fromkeys(question[one.start : one.end] for one in mentions))
        kept = sorted(
            ((fit, number) for number, fit in fits.items() if fit >= _LEAST_FIT), key=lambda item: (-item[0], item[1])
        )
        if len(kept) > _MOST_HINTS:
            kept = [(fit, number) for fit, number in kept if fit > kept[_MOST_HINTS][0]]
        meant = max((self._agrees(number, asked) for _, number in kept), default=0.0)
        hints = tuple(
            DocumentHint(
                self.labels.ids[number],
                self.labels.sources[number],
                fit=round(min(1.0, fit), 4),
                words=(*named[number][1], *(spans if meant and self._agrees(number, asked) == meant else ())),
            )
            for fit, number in kept
        )
        return Named(hints, asked, extreme, unmatched)

    def whole(self, words: Sequence[Word], asked: Sequence[Period], *, newest: bool = False) -> str:
        """Id of the one document whose names hold all of these words and periods; "" if none or several do."""
        postings = [
            {
                self.labels.document[label]
                for term in self._stand_ins(word)
                for label in self.labels.postings.get(term, ())
            }
            for word in words
        ]
        if not postings and not asked:
            return ""
        holding = set.intersection(*postings) if postings else set(self._by_time(asked, ""))
        holding = {one for one in holding if all(self._dated(one).agrees(period) > 0 for period in asked)}
        if len(holding) > 1 and asked:
            best = max(min(self._dated(one).agrees(period) for period in asked) for one in holding)
            holding = {one for one in holding if min(self._dated(one).agrees(p) for p in asked) == best}
        if len(holding) > 1 and newest:
            last = max(self._dated(one).newest for one in holding)
            holding = {one for one in holding if self._dated(one).newest == last}
        return self.labels.ids[holding.pop()] if len(holding) == 1 else ""

    def _cut(self, text: str) -> list[Word]:
        return words_of(text, terms=self._terms)

    def _dated(self, number: int) -> Dated:
        return self.labels.dates[self.labels.dated[number]]

    # ── fitting ───────────────────────────────────────────────────────────────────────────────────────────────

    def _rarity(self, term: str) -> float:
        """1 for a term of one document's names, 0 for one of all documents' names."""
        count = len(self)
        held = self.labels.frequency.get(term, 0)
        return math.log(count / held) / math.log(count) if held and count > 1 else 0.0

    def _stand_ins(self, word: Word) -> list[str]:
        return [*word.terms, *(code for term in word.terms for code, _ in self.aliases.get(term, ()))]

    def _said(self, words: Sequence[Word]) -> dict[str, tuple[float, str]]:
        """Terms of names that the question says, with how plainly, and its own word for it."""
        said: dict[str, tuple[float, str]] = {}
        for word in words:
            for term in word.terms:
                for name, strength in ((term, 1.0), *self.aliases.get(term, ())):
                    if name in self.labels.frequency and strength > said.get(name, (0.0, ""))[0]:
                        said[name] = (strength, bare(word.text))
        return said

    def _by_words(self, said: Mapping[str, tuple[float, str]]) -> dict[int, _Fit]:
        """Document number -> how well its best label fits, 0..1, and the words of the question in it."""
        telling = sorted((self.labels.frequency[term], term) for term in said if self._rarity(term) > 0)
        labels: dict[int, None] = {}
        for _, term in telling:
            if len(labels) + len(self.labels.postings[term]) <= _MOST_CANDIDATES:
                labels.update(dict.fromkeys(self.labels.postings[term]))
        best: dict[int, tuple[float, tuple[str, ...]]] = {}
        held: dict[int, dict[str, float]] = defaultdict(dict)
        for number in labels:
            document, weight = self.labels.document[number], self.labels.weight[number]
            total = hit = 0.0
            own: dict[str, float] = {}
            for terms in self.labels.readings[self.labels.reading[number]]:
                rarity = max(self._rarity(term) for term in terms)
                term = max((term for term in terms if term in said), key=lambda one: said[one][0], default="")
                if term:
                    own[said[term][1]] = rarity * said[term][0]
                    hit += rarity * said[term][0]
                # Nobody says all the numbers and codes of a file name.
                coded = not term and any(map(str.isdigit, "".join(terms)))
                total += rarity * (_UNSAID_CODE if coded else 1.0)
            fit = weight * (hit / total) ** 1.5 * min(1.0, 2.0 * hit) if total else 0.0
            if fit > best.get(document, (0.0, ()))[0]:
                best[document] = (fit, tuple(own))
            if weight > METADATA_WEIGHT or not held[document]:
                held[document] |= own
        everything = math.fsum({word: one for words in held.values() for word, one in words.items()}.values()) or 1.0
        # Of two documents with the same label, the one that other labels name as well.
        return {
            number: (fit * (0.7 + 0.3 * math.fsum(held[number].values()) / everything), tuple(held[number]), words)
            for number, (fit, words) in best.items()
        }

    def _by_time(self, asked: Sequence[Period], extreme: str) -> list[int]:
        """Documents that bear a period asked for, or part of it; none where these are too many to tell apart."""
        if extreme and not asked:
            return list(range(len(self))) if len(self) <= _MOST_CANDIDATES else []
        found: set[int] = set()
        for period in asked:
            for one in (period, Period(period.year)) if period.year else (period,):
                for date in self.labels.by_period.get(one, ()):
                    found.update(self._documents_of_date[date])
                    if len(found) > _MOST_CANDIDATES:
                        return []
        return sorted(found)

    def _agrees(self, number: int, asked: Sequence[Period]) -> float:
        return max((self._dated(number).agrees(period) for period in asked), default=0.0)

    def _dated_only(
        self, named: Mapping[int, object], asked: Sequence[Period], extreme: str, *, anchored: bool
    ) -> dict[int, float]:
        """Where no word names a document: by period alone, and the less the less the period says."""
        if asked:
            trust = 0.8 if anchored else 0.35 if all(one.is_year for one in asked) else 0.6
            agreed = {number: self._agrees(number, asked) for number in named}
            best = max(agreed.values(), default=0.0)
            return {number: trust * value * (value / best) for number, value in agreed.items() if value}
        if extreme:
            chosen = self._at_the_end(list(named), extreme)
            return dict.fromkeys(chosen, 0.6) if len(chosen) < len(named) else {}
        return {}

    def _named_and_dated(
        self, named: Mapping[int, _Fit], asked: Sequence[Period], extreme: str
    ) -> tuple[dict[int, float], tuple[Period, ...]]:
        if asked:
            agreed = {number: self._agrees(number, asked) for number in named}
            best = max(agreed.values())
            unmatched = tuple(one for one in asked if not any(self._dated(number).agrees(one) for number in named))
            if not best:
                return {number: self._trust * fit for number, (fit, _, _) in named.items()}, unmatched
            return {
                number: (0.4 * fit + 0.6) * agreed[number] * (agreed[number] / best)
                if agreed[number]
                else (_OTHER_PERIOD if any(self._dated(number).levels) else self._trust) * fit
                for number, (fit, _, _) in named.items()
            }, unmatched
        if extreme:
            groups: dict[tuple[str, ...], list[int]] = defaultdict(list)
            for number, (_, _, words) in named.items():
                groups[words].append(number)
            chosen = {one for numbers in groups.values() for one in self._at_the_end(numbers, extreme)}
            return {n: 0.4 * fit + 0.6 if n in chosen else 0.35 * fit for n, (fit, _, _) in named.items()}, ()
        return {number: self._trust * fit for number, (fit, _, _) in named.items()}, ()

    def _at_the_end(self, numbers: Sequence[int], extreme: str) -> list[int]:
        dated = {number: self._dated(number).newest for number in numbers if self._dated(number).newest[0]}
        if not dated:
            return []
        end = max(dated.values()) if extreme == "newest" else min(dated.values())
        return [number for number, when in dated.items() if when == end]

    def _extreme(self, question: str, *, named: bool) -> str:
        """Whether the newest or the oldest document is asked for: "the latest 10-Q", not "current assets"."""
        for match in _EXTREME.finditer(question):
            after = match["after"] or ""
            noun = bool(_SPAN_OF_TIME.search(after)) or any(
                term in self.labels.frequency for word in self._cut(after) for term in word.terms
            )
            if noun or (named and not match["current"]):
                return "oldest" if match["oldest"] else "newest"
        return ""


def _comparable(named: Mapping[int, _Fit], best: float) -> dict[int, _Fit]:
    """Those that fit about as well as the best, or by the same words, or that the question names by another word."""
    close = {number: found for number, found in named.items() if found[0] >= _CLOSE * best}
    said = {word for _, words, _ in close.values() for word in words}
    first = {word for fit, words, _ in close.values() if fit == best for word in words}
    return {
        number: found
        for number, found in named.items()
        if number in close or first.issubset(found[1]) or (found[0] >= _BESIDES and not said.issuperset(found[1]))
    }


def _asked(mentions: Sequence[Mention]) -> tuple[Period, ...]:
    found = tuple(dict.fromkeys(mention.period for mention in mentions))
    narrow = {one.year for one in found if not one.is_year}
    return tuple(one for one in found if not one.is_year or one.year not in narrow)
