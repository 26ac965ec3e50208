"""The product's arms and its fused ranking over chunks held in memory, exact, for the benchmarks of splitting.

The same functions as in the product (encoder, BM25 weights, z-scores, one-bit late interaction), without an engine, so
that dozens of ways to cut a corpus can be compared in minutes. The idf and scores are those of `Engine.search_lexical`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from cognicraft.models.minilm import MiniLM
from cognicraft.records import ContextualChunk, Encoding, Ranking, Scored
from cognicraft.search.fuse import minmax, zscore
from cognicraft.search.lexical import LexicalEncoder
from cognicraft.search.rerank import maxsim

DEPTH = 100
DEFAULT = "default"
"""z(dense) + z(lexical) + z(late interaction) over the union of both top 100s: what the product does unless told."""


class DenseArm:
    """Cosine over the chunks' dense texts, with the token codes for late interaction."""

    def __init__(self, texts: Sequence[str], *, embedder: MiniLM) -> None:
        encodings = embedder.encode_documents(texts, token_codes=True)
        self.vectors = np.stack([encoding.vector for encoding in encodings])
        self.codes = [encoding.token_codes for encoding in encodings]

    def scores(self, question: Encoding) -> npt.NDArray[np.float32]:
        scores: npt.NDArray[np.float32] = self.vectors @ question.vector
        return scores


class LexicalArm:
    """BM25 over the chunks' lexical texts."""

    def __init__(self, texts: Sequence[str], *, encoder: LexicalEncoder) -> None:
        self.encoder = encoder
        self.size = len(texts)
        postings: dict[int, tuple[list[int], list[float]]] = {}
        for number, text in enumerate(texts):
            vector, _ = encoder.document(text, language="en")
            for term, weight in zip(vector.indices.tolist(), vector.values.tolist(), strict=True):
                numbers, weights = postings.setdefault(term, ([], []))
                numbers.append(number)
                weights.append(weight)
        self.postings = {
            term: (np.array(numbers), np.array(weights, np.float32)) for term, (numbers, weights) in postings.items()
        }

    def scores(self, question: str) -> npt.NDArray[np.float32]:
        query = self.encoder.query(question, languages=["en"])
        scores = np.zeros(self.size, np.float32)
        for term, count in zip(query.indices.tolist(), query.values.tolist(), strict=True):
            if term in self.postings:
                numbers, weights = self.postings[term]
                idf = np.log(1.0 + (self.size - len(numbers) + 0.5) / (len(numbers) + 0.5))
                scores[numbers] += count * idf * weights
        return scores


def rankings(question: str, *, dense: DenseArm, lexical: LexicalArm, encoding: Encoding) -> dict[str, Ranking]:
    """By name: dense, lexical, minmax, zscore, and `DEFAULT`; chunk ids are their numbers in the texts."""
    cosines = dense.scores(encoding)
    arms = {"dense": _best(cosines, least=-2.0), "lexical": _best(lexical.scores(question), least=0.0)}
    arms = {name: ranking for name, ranking in arms.items() if ranking}
    union = [hit.chunk_id for hit in zscore(arms)]
    assert encoding.token_codes is not None
    late = maxsim(encoding.token_codes, [dense.codes[int(name)] for name in union])
    third = tuple(Scored(name, float(score)) for name, score in zip(union, late, strict=True) if score == score)
    return {
        "dense": arms["dense"],
        "lexical": arms.get("lexical", ()),
        "minmax": minmax(arms),
        "zscore": zscore(arms),
        DEFAULT: zscore({**arms, "late-interaction": third}) if third else zscore(arms),
    }


def by_arm(
    questions: Mapping[str, str],
    chunks: Sequence[ContextualChunk],
    *,
    embedder: MiniLM,
    encodings: Mapping[str, Encoding],
    average_length: float | None = None,
) -> dict[str, dict[str, Ranking]]:
    """Ranking name -> question id -> ranking. `average_length` of BM25 in terms; None: the product's own."""
    encoder = LexicalEncoder() if average_length is None else LexicalEncoder(average_length=average_length)
    dense = DenseArm([chunk.dense_text for chunk in chunks], embedder=embedder)
    lexical = LexicalArm([chunk.lexical_text for chunk in chunks], encoder=encoder)
    found: dict[str, dict[str, Ranking]] = {}
    for name, question in questions.items():
        for arm, ranking in rankings(question, dense=dense, lexical=lexical, encoding=encodings[name]).items():
            found.setdefault(arm, {})[name] = ranking
    return found


def _best(scores: npt.NDArray[np.float32], *, least: float) -> Ranking:
    order = np.lexsort((np.arange(len(scores)), -scores))[:DEPTH]
    return tuple(Scored(str(number), float(scores[number])) for number in order if scores[number] > least)
