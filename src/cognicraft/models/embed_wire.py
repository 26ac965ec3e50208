"""The request and the reply of each provider of encoders, as documented by it. Pure: no network here.

Takes: texts, and whether they are questions. Returns: the path and body to send; the vectors in a reply. Sources:
platform.openai.com/docs/api-reference/embeddings, ai.google.dev/api/embeddings, docs.cohere.com/reference/embed,
docs.ollama.com/api/embed. What can go wrong: a reply of another shape (KeyError, TypeError, ValueError, IndexError),
which the caller turns into ModelReplyInvalid.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cognicraft.models.embed_names import EmbedderName
from cognicraft.records import FloatArray


class Wire:
    """One provider's protocol. max_texts and max_tokens: of one request, by its documentation."""

    max_texts = 32
    max_tokens = 100_000

    def __init__(self, name: EmbedderName) -> None:
        self.name = name

    def headers(self, key: str) -> dict[str, str]:
        return {"authorization": f"Bearer {key}"} if key else {}

    def request(self, texts: Sequence[str], *, query: bool) -> tuple[str, dict[str, Any]]:
        """Path and body."""
        raise NotImplementedError

    def vectors(self, reply: Mapping[str, Any]) -> list[FloatArray]:
        """In the order of the texts, as long as they came."""
        raise NotImplementedError


class OpenAIWire(Wire):
    """OpenAI, and servers that speak as it does. The documented limit is 2,048 texts and 300,000 tokens."""

    max_texts = 256

    def request(self, texts: Sequence[str], *, query: bool) -> tuple[str, dict[str, Any]]:
        # A quarter of the bytes of numbers in text; other servers do not all know it.
        form = "base64" if self.name.provider.name == "openai" else "float"
        body = {"model": self.name.model, "input": list(texts), "encoding_format": form}
        return "/embeddings", body | ({"dimensions": self.name.dimensions} if self.name.dimensions else {})

    def vectors(self, reply: Mapping[str, Any]) -> list[FloatArray]:
        rows = sorted(reply["data"], key=lambda row: int(row["index"]))
        if [int(row["index"]) for row in rows] != list(range(len(rows))):
            raise ValueError("the numbers of the vectors have a gap")
        return [
            _from_base64(row["embedding"]) if isinstance(row["embedding"], str) else _row(row["embedding"])
            for row in rows
        ]


class CompatibleWire(OpenAIWire):
    """Any OpenAI-compatible server; small ones take small batches."""

    max_texts = 32
    max_tokens = 16_000


class GoogleWire(Wire):
    """Gemini. gemini-embedding-2 takes its task from the words before a text, the others from `taskType`."""

    max_texts = 100
    max_tokens = 20_000

    def headers(self, key: str) -> dict[str, str]:
        return {"x-goog-api-key": key}

    def request(self, texts: Sequence[str], *, query: bool) -> tuple[str, dict[str, Any]]:
        model = f"models/{self.name.model.removeprefix('models/')}"
        extra: dict[str, Any] = {"outputDimensionality": self.name.dimensions} if self.name.dimensions else {}
        if "gemini-embedding-2" not in model:
            extra["taskType"] = "RETRIEVAL_QUERY" if query else "RETRIEVAL_DOCUMENT"
        requests = [{"model": model, "content": {"parts": [{"text": text}]}, **extra} for text in texts]
        return f"/{model}:batchEmbedContents", {"requests": requests}

    def vectors(self, reply: Mapping[str, Any]) -> list[FloatArray]:
        return [_row(one["values"]) for one in reply["embeddings"]]


class CohereWire(Wire):
    """Cohere, version 2. Texts that are too long are refused, not cut unseen."""

    max_texts = 96

    def request(self, texts: Sequence[str], *, query: bool) -> tuple[str, dict[str, Any]]:
        body: dict[str, Any] = {
            "model": self.name.model,
            "input_type": "search_query" if query else "search_document",
            "texts": list(texts),
            "embedding_types": ["float"],
            "truncate": "NONE",
        }
        return "/v2/embed", body | ({"output_dimension": self.name.dimensions} if self.name.dimensions else {})

    def vectors(self, reply: Mapping[str, Any]) -> list[FloatArray]:
        return [_row(one) for one in reply["embeddings"]["float"]]


class OllamaWire(Wire):
    """Ollama. Texts that are too long are refused, not cut unseen."""

    max_texts = 32
    max_tokens = 16_000

    def request(self, texts: Sequence[str], *, query: bool) -> tuple[str, dict[str, Any]]:
        body: dict[str, Any] = {"model": self.name.model, "input": list(texts), "truncate": False}
        return "/api/embed", body | ({"dimensions": self.name.dimensions} if self.name.dimensions else {})

    def vectors(self, reply: Mapping[str, Any]) -> list[FloatArray]:
        return [_row(one) for one in reply["embeddings"]]


@dataclass(frozen=True, slots=True)
class Shown:
    """What Ollama says of a model: vector length, and tokens that it reads."""

    dimensions: int
    max_tokens: int


def shown_by_ollama(reply: Mapping[str, Any]) -> Shown:
    """From the reply of /api/show. `num_ctx` of the model's own parameters may be less than what it could read."""
    info: Mapping[str, Any] = reply["model_info"]
    family = info["general.architecture"]
    tokens = int(info[f"{family}.context_length"])
    for line in str(reply.get("parameters") or "").splitlines():
        name, _, value = line.strip().partition(" ")
        if name == "num_ctx":
            tokens = min(tokens, int(value))
    return Shown(int(info[f"{family}.embedding_length"]), tokens)


WIRES: Mapping[str, type[Wire]] = {
    "openai": OpenAIWire,
    "compatible": CompatibleWire,
    "google": GoogleWire,
    "cohere": CohereWire,
    "ollama": OllamaWire,
}


def _row(values: Any) -> FloatArray:
    row = np.asarray(values, np.float32)
    if row.ndim != 1:
        raise ValueError("a vector is not a list of numbers")
    return row


def _from_base64(text: str) -> FloatArray:
    return np.frombuffer(base64.b64decode(text, validate=True), "<f4").astype(np.float32)
