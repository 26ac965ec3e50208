"""Late interaction: candidates scored anew, token against token, from one bit a dimension.

Takes: token codes of the question and of the candidates (kept at ingest), packed sign bits of centred token vectors.
Returns: a score per candidate, larger is better, in [0, 1].
Method: MaxSim (Khattab and Zaharia, "ColBERT", SIGIR 2020): for each token of the question the most similar token of
    the chunk, averaged; the cosine of two tokens is estimated from the Hamming distance of their signs (Charikar 2002).
    `sharpness` is a power on the cosines before they are averaged: 1 is plain MaxSim; above 1 a token found again
    outweighs several that are vaguely met (docs/decisions/0007-default-ranking.md).
Cost: 200 candidates of 200 tokens against 12 tokens in a few ms by popcount; bounded by a time budget.
What can go wrong: a chunk stored without codes gets no score; a spent budget leaves the last candidates without one.
    Both are counted in the result.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cognicraft.records import ByteArray, FloatArray, Ranking
from cognicraft.search.fuse import ranked

CodesOf = Callable[[Sequence[str]], list[ByteArray | None]]
"""Chunk ids to token codes, in order; None where nothing is stored."""


def maxsim(query_codes: ByteArray, document_codes: Sequence[ByteArray | None], *, sharpness: float = 1.0) -> FloatArray:
    """Mean over the question's tokens of max(0, cosine of the nearest token)^sharpness.

    Returns (len(document_codes),) float32 in [0, 1], larger is better.

    query_codes: (query tokens, bytes) uint8; each document (tokens, bytes) uint8, or None. NaN for a document that is
    None or has no tokens, and for all where the question has none.
    Raises: ValueError where the widths differ.
    """
    scores = np.full(len(document_codes), np.nan, dtype=np.float32)
    present = [i for i, codes in enumerate(document_codes) if codes is not None and len(codes)]
    if not present or not len(query_codes):
        return scores
    found = [codes for codes in document_codes if codes is not None and len(codes)]
    width = query_codes.shape[1]
    if any(codes.shape[1] != width for codes in found):
        raise ValueError(f"token codes of different widths: the question has {width} bytes a token")
    lengths = np.array([len(codes) for codes in found])
    starts = np.concatenate(([0], np.cumsum(lengths)[:-1]))
    # One column per 64 dimensions: contiguous columns keep the popcount in vector registers.
    columns = np.ascontiguousarray(_words(np.concatenate(found)).T)
    nearest = np.empty((len(query_codes), len(found)), dtype=np.uint16)
    distance = np.empty(columns.shape[1], dtype=np.uint16)
    for row, token in enumerate(_words(query_codes)):
        distance.fill(0)
        for column, word in zip(columns, token, strict=True):
            distance += np.bitwise_count(column ^ word)
        nearest[row] = np.minimum.reduceat(distance, starts)
    similarity = np.maximum(np.cos(nearest * np.float32(np.pi / (8 * width))), 0.0) ** np.float32(sharpness)
    scores[present] = similarity.mean(axis=0)
    return scores


def _words(codes: ByteArray) -> npt.NDArray[np.uint64]:
    """Rows of bytes as rows of 64-bit words, padded with zeros (which differ nowhere)."""
    padding = -codes.shape[1] % 8
    if padding:
        codes = np.pad(codes, ((0, 0), (0, padding)))
    return np.ascontiguousarray(codes).view(np.uint64)


@dataclass(frozen=True, slots=True)
class Reranked:
    """Scores of the candidates that were reranked, best first, and how many were not."""

    ranking: Ranking
    asked: int
    without_codes: int
    out_of_time: int
    elapsed_ms: float


class LateInteraction:
    """MaxSim over the first `depth` candidates in their order, until the time is spent.

    depth: the rest count as the least of those that were scored (in fusion). budget_ms: the time that fetching codes
    and scoring may take. The first batch is always done; after it the measured rate decides how many fit.
    """

    def __init__(
        self,
        *,
        budget_ms: float = 250.0,
        depth: int = 100,
        first_batch: int = 32,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        if not budget_ms > 0 or first_batch < 1 or depth < 1:
            raise ValueError(
                f"budget_ms, depth and first_batch must be above 0, not {budget_ms}, {depth} and {first_batch}"
            )
        self.budget_ms = budget_ms
        self.depth = depth
        self._first_batch = first_batch
        self._clock = clock

    def __call__(
        self, candidates: Sequence[str], *, query_codes: ByteArray, codes_of: CodesOf, sharpness: float = 1.0
    ) -> Reranked:
        """Score the candidates, best candidates first in `candidates`."""
        started = self._clock()
        candidates = candidates[: self.depth]
        scores: dict[str, float] = {}
        done = without = 0
        batch = self._first_batch
        elapsed_ms = 0.0
        while done < len(candidates):
            ids = candidates[done : done + batch]
            values = maxsim(query_codes, codes_of(ids), sharpness=sharpness)
            for chunk_id, value in zip(ids, values.tolist(), strict=True):
                if value == value:
                    scores[chunk_id] = value
                else:
                    without += 1
            done += len(ids)
            elapsed_ms = (self._clock() - started) * 1000.0
            left_ms = self.budget_ms - elapsed_ms
            batch = int(left_ms * done / elapsed_ms) if elapsed_ms > 0 else len(candidates)
            if batch < 1:
                break
        return Reranked(ranked(scores), len(candidates), without, len(candidates) - done, elapsed_ms)
