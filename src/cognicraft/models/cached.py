"""Replies kept on disk, so that the same call is paid for once.

Takes: a language model and a folder. Returns: the same model, whose whole replies are kept under a hash of what was
asked: model, temperature, messages, limit, schema. Method: one small JSON file a reply, written beside its place and
moved there, so that threads and processes can share a folder and a kill leaves no half file. Cost: reading one file.
What can go wrong: a damaged file counts as absent; a folder that cannot be written to is said once, in `notes`, and
the calls go on.

Only whole replies are kept: no cut stream, no error. A reply cut at its token limit is whole as far as it was asked.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from cognicraft.models.wrapped import WrappedModel
from cognicraft.protocols import CompletionStream, LanguageModel
from cognicraft.records import Completion, Message, Usage, digest

Schema = TypeVar("Schema", bound=BaseModel)

FORMAT = "1"
_PIECE_CHARACTERS = 24  # of a reply that is given again as a stream


class CachedModel(WrappedModel):
    """A `LanguageModel` that asks each thing once. Thread-safe; a folder may be shared by processes.

    temperature: what the model was opened with; replies to another temperature are other replies.
    """

    def __init__(self, model: LanguageModel, folder: Path, *, temperature: float | None = None) -> None:
        super().__init__(model)
        self._folder = folder
        own = getattr(model, "temperature", None) if temperature is None else temperature
        self._temperature = "" if own is None else repr(float(own))
        self._lock = threading.Lock()
        self._notes: list[str] = []

    @property
    def notes(self) -> tuple[str, ...]:
        """What the cache went without, in sentences."""
        with self._lock:
            return tuple(self._notes)

    def complete(
        self, messages: Sequence[Message], *, max_tokens: int | None = None, timeout_s: float | None = None
    ) -> Completion:
        key = self._key(messages, max_tokens)
        found = self._completion(key)
        if found is not None:
            return found
        completion = self._model.complete(messages, max_tokens=max_tokens, timeout_s=timeout_s)
        self.keep(key, completion)
        return completion

    def stream(
        self, messages: Sequence[Message], *, max_tokens: int | None = None, timeout_s: float | None = None
    ) -> CompletionStream:
        key = self._key(messages, max_tokens)
        found = self._completion(key)
        if found is not None:
            return ReplayedStream(found)
        return _KeptStream(self, key, self._model.stream(messages, max_tokens=max_tokens, timeout_s=timeout_s))

    def structured(
        self,
        messages: Sequence[Message],
        schema: type[Schema],
        *,
        max_tokens: int | None = None,
        timeout_s: float | None = None,
    ) -> tuple[Schema, Usage]:
        key = self._key(messages, max_tokens, json.dumps(schema.model_json_schema(), sort_keys=True))
        value = self._read(key).get("value")
        if value is not None:
            with contextlib.suppress(ValidationError):
                return schema.model_validate_json(json.dumps(value)), Usage(cached_calls=1)
        answer, usage = self._model.structured(messages, schema, max_tokens=max_tokens, timeout_s=timeout_s)
        self._write(key, {"value": answer.model_dump(mode="json")})
        return answer, usage

    def keep(self, key: str, completion: Completion) -> None:
        """Store a whole reply."""
        self._write(key, {"text": completion.text, "finish": completion.finish, "model": completion.model})

    def _key(self, messages: Sequence[Message], max_tokens: int | None, schema: str = "") -> str:
        # `stable` tells the provider what to keep; it changes no reply.
        turns = [part for message in messages for part in (message.role, message.text)]
        limit = "" if max_tokens is None else str(max_tokens)
        # A limit that is left out is the model's own.
        own = str(getattr(self._model, "max_output_tokens", ""))
        return digest(FORMAT, self._model.name, self._temperature, limit or own, schema, *turns)

    def _path(self, key: str) -> Path:
        return self._folder / key[:2] / f"{key}.json"

    def _completion(self, key: str) -> Completion | None:
        kept = self._read(key)
        text, finish, model = kept.get("text"), kept.get("finish"), kept.get("model")
        if not isinstance(text, str) or finish not in ("stop", "length") or not isinstance(model, str):
            return None
        return Completion(text, Usage(cached_calls=1), model, finish)

    def _read(self, key: str) -> dict[str, Any]:
        try:
            kept = json.loads(self._path(key).read_bytes())
        except (OSError, ValueError):
            return {}
        return kept if isinstance(kept, dict) else {}

    def _write(self, key: str, kept: dict[str, Any]) -> None:
        path = self._path(key)
        beside = path.with_name(f"{path.name}.{os.getpid()}.{threading.get_ident()}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            # Escaped, so that lone surrogates survive.
            beside.write_text(json.dumps(kept), encoding="ascii")
            beside.replace(path)
        except OSError as error:
            with contextlib.suppress(OSError):
                beside.unlink()
            note = f"Replies of {self.name} are not kept: {self._folder} cannot be written to ({error.strerror})."
            with self._lock:
                if note not in self._notes:
                    self._notes.append(note)


class ReplayedStream:
    """A kept reply as a stream, in small pieces."""

    def __init__(self, completion: Completion) -> None:
        self._whole = completion
        self._given = 0

    def __iter__(self) -> Iterator[str]:
        text = self._whole.text
        while self._given < len(text):
            piece = text[self._given : self._given + _PIECE_CHARACTERS]
            self._given += len(piece)
            yield piece

    def close(self) -> None:
        """There is nothing to cancel."""

    @property
    def completion(self) -> Completion:
        whole = self._whole
        return Completion(whole.text[: self._given], whole.usage, whole.model, whole.finish)


class _KeptStream:
    """Keeps the reply once it has come whole."""

    def __init__(self, cache: CachedModel, key: str, stream: CompletionStream) -> None:
        self._cache = cache
        self._key = key
        self._stream = stream
        self._closed = False

    def __iter__(self) -> Iterator[str]:
        yield from self._stream
        # Reached only where the inner stream ended by itself.
        if not self._closed:
            self._cache.keep(self._key, self._stream.completion)

    def close(self) -> None:
        self._closed = True
        self._stream.close()

    @property
    def completion(self) -> Completion:
        return self._stream.completion
