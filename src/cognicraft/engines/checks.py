"""What every engine refuses before it writes anything, so that a refused batch leaves no trace."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np

from cognicraft.engines.filters import document_fields, kind_of
from cognicraft.errors import CogniCraftError, EngineError
from cognicraft.records import ByteArray, EncodedChunk, EncodedDocument, FloatArray, SparseVector

_ID = re.compile(r"[0-9a-f]{32}")
_DEFECT = "This is a defect of the step that made it; report it with the message."


def is_id(text: str) -> bool:
    """Whether it has the form of a document or chunk id: 32 lower-case hex digits."""
    return isinstance(text, str) and _ID.fullmatch(text) is not None


def checked(
    documents: Sequence[EncodedDocument], *, dense: Mapping[str, int], token_codes: bool = True
) -> list[EncodedDocument]:
    """The documents of one `replace`, the last one where an id is given twice. Raises EngineError."""
    last = {document.record.id: document for document in documents}
    owner: dict[str, str] = {}
    for document in last.values():
        record = document.record
        _require(is_id(record.id), f"{record.id!r} ({record.source}) is not a document id")
        _require(record.status == "ready" or not document.chunks, f"The failed record of {record.source} has chunks")
        try:
            for values in document_fields(record).values():
                for value in values:
                    kind_of(value)
        except CogniCraftError as error:
            raise EngineError(f"{record.source}: {error.message}", remedy=error.remedy) from error
        for chunk in document.chunks:
            _check_chunk(chunk, source=record.source, dense=dense, token_codes=token_codes)
            _require(chunk.id not in owner, f"The chunk id {chunk.id} of {record.source} is there twice")
            owner[chunk.id] = record.id
    return list(last.values())


def query_vector(vector: FloatArray, *, arm: str, dense: Mapping[str, int]) -> FloatArray:
    """The vector with L2 norm 1 (zero stays zero). Raises EngineError for an unknown arm or a wrong shape."""
    if arm not in dense:
        raise EngineError(
            f"This workspace holds no vectors of the encoder {arm!r}.",
            remedy=f"It holds: {', '.join(sorted(dense)) or 'none'}. Reindex to add an encoder.",
        )
    _require(_is_vector(vector, dense[arm]), f"The query vector for {arm!r} has not {dense[arm]} finite numbers")
    return unit(vector)


def unit(vector: FloatArray) -> FloatArray:
    """L2 norm 1; the zero vector stays what it is."""
    norm = float(np.linalg.norm(vector))
    return np.asarray(vector / norm if norm > 0 else vector, dtype=np.float32)


def query_terms(query: SparseVector) -> SparseVector:
    """The query as it came. Raises EngineError where it is not a sparse vector by the definition of the record."""
    _check_sparse(query, of="A lexical query")
    return query


def _check_chunk(chunk: EncodedChunk, *, source: str, dense: Mapping[str, int], token_codes: bool) -> None:
    name = f"The chunk {chunk.id!r} of {source}"
    _require(is_id(chunk.id), f"{name} has no valid id")
    _require(set(chunk.dense) == set(dense), f"{name} has vectors {sorted(chunk.dense)}, not {sorted(dense)}")
    for arm, vector in chunk.dense.items():
        _require(_is_vector(vector, dense[arm]), f"{name} has not {dense[arm]} finite numbers for {arm!r}")
    _check_sparse(chunk.lexical, of=name)
    if chunk.token_codes:
        _require(token_codes, f"{name} has token codes, but this workspace was made without them")
        for arm, codes in chunk.token_codes.items():
            _require(arm in dense and _is_codes(codes), f"{name} has token codes of a wrong shape for {arm!r}")


def _check_sparse(vector: SparseVector, *, of: str) -> None:
    indices, values = np.asarray(vector.indices), np.asarray(vector.values)
    _require(indices.ndim == 1 and indices.shape == values.shape, f"{of} has indices and values of two lengths")
    if indices.size:
        whole = indices.astype(np.int64)
        _require(bool(np.all(np.diff(whole) > 0)) and whole[0] >= 0, f"{of} has indices that do not increase")
        _require(bool(np.all(np.isfinite(values))), f"{of} has a weight that is not a finite number")


def _is_vector(vector: FloatArray, dimensions: int) -> bool:
    return np.shape(vector) == (dimensions,) and bool(np.all(np.isfinite(vector)))


def _is_codes(codes: ByteArray) -> bool:
    return isinstance(codes, np.ndarray) and codes.ndim == 2 and codes.dtype == np.uint8


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise EngineError(f"{message}.", remedy=_DEFECT)
