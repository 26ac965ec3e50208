"""An encoder from the Hugging Face hub: through fastembed where it knows the name, else its ONNX folder.

Takes: a name on the hub (`BAAI/bge-small-en-v1.5`, any `owner/name` with an ONNX encoder). Returns: an `Embedder`
without token codes. Method: what is on this machine is used without asking the network; otherwise it is fetched once,
into `hub` in the cache folder ($FASTEMBED_CACHE_PATH where that is set). fastembed says how its models are pooled; they
run here one text at a time, so that company never changes a vector. The family's own words stand before questions and
documents.
Cost: 70 MB to 2 GB on disk, by the model. What can go wrong: no network and nothing kept (ModelUnavailable), no such
model (ModelNotFound), one that is not an ONNX encoder (ModelFileError), the extra `hub` is absent (MissingExtra).
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any

import numpy as np

from cognicraft.errors import MissingExtra, ModelFileError, ModelNotFound, ModelUnavailable
from cognicraft.models.embed_local import LocalEmbedder
from cognicraft.models.embed_prompts import prefixes_of
from cognicraft.models.onnx_folder import MODEL_FILES, FolderEmbedder, own_prefixes
from cognicraft.protocols import Embedder
from cognicraft.records import FloatArray, digest

_ASK_S = 10.0
"""How long the hub may take to say whether it has a model; fastembed alone would try for 39 s without a network."""
_BESIDE = ("*.json", "1_Pooling/config.json")
_USUAL_MAX_TOKENS = 512


def hub_embedder(name: str, *, cache_folder: Path | None = None) -> Embedder:
    """The encoder of that name, fetched where it is not on this machine.

    cache_folder: left out, `hub` in the cache folder.

    Raises: MissingExtra, ModelUnavailable, ModelNotFound, ModelFileError.
    """
    folder = cache_folder or _cache_folder()
    listed = _listed(name)
    if listed is not None:
        return ListedEmbedder(name, listed, folder)
    snapshot = _snapshot(name, folder)
    # Its own prompts first; a folder of the cache is named after a revision, which tells no family.
    prefixes = own_prefixes(snapshot) or prefixes_of(name)
    return FolderEmbedder(snapshot, name=f"hub:{name}", prefixes=prefixes)


class ListedEmbedder(LocalEmbedder):
    """An `Embedder` that fastembed knows. Thread-safe."""

    def __init__(self, name: str, listed: Any, cache_folder: Path) -> None:
        self._listed = listed
        self._model = _load(name, listed, cache_folder)
        own = getattr(self._model.model, "tokenizer", None)
        if own is None:
            raise ModelFileError(f"hub:{name}", reason="it has no tokenizer", remedy="Choose another encoder.")
        # fastembed's own cuts and pads; counting needs one that does neither.
        tokenizer = type(own).from_str(own.to_str())
        tokenizer.no_truncation()
        tokenizer.no_padding()
        max_tokens = int((own.truncation or {}).get("max_length") or _USUAL_MAX_TOKENS)
        super().__init__(f"hub:{name}", tokenizer=tokenizer, prefixes=prefixes_of(name), max_tokens=max_tokens)

    @property
    def dimensions(self) -> int:
        return int(self._listed.dim)

    @property
    def fingerprint(self) -> str:
        """Of the repository, the file and the way of pooling, which fastembed has changed between versions."""
        kind = type(self._model.model).__name__
        source = (str(self._listed.sources.hf), str(self._listed.model_file))
        return digest(self.name, *source, kind, *self._prefixes, size=8)

    def _vector(self, text: str, *, query: bool) -> FloatArray:
        if query:
            (vector,) = self._model.query_embed([self._prefixes.query + text], batch_size=1)
        else:
            (vector,) = self._model.passage_embed([self._prefixes.document + text], batch_size=1)
        return np.asarray(vector, np.float32)


def _import_fastembed(name: str) -> Any:
    try:
        import fastembed
    except ImportError as error:
        raise MissingExtra(f"hub:{name}", extra="hub") from error
    # It writes to standard error what our errors say in one sentence.
    with contextlib.suppress(ImportError):
        from loguru import logger

        logger.disable("fastembed")
    return fastembed


def _listed(name: str) -> Any | None:
    """What fastembed knows of the name."""
    known = _import_fastembed(name).TextEmbedding._list_supported_models()
    return next((model for model in known if model.model.lower() == name.lower()), None)


def _load(name: str, listed: Any, folder: Path) -> Any:
    options = {
        "model_name": listed.model,
        "cache_dir": str(folder),
        "threads": 1,
        "providers": ["CPUExecutionProvider"],
    }
    make = _import_fastembed(name).TextEmbedding
    try:
        return make(local_files_only=True, **options)
    except Exception:  # fastembed has no class of its own for what is not there
        pass
    if listed.sources.hf:
        _ask_hub(name, listed.sources.hf)
    try:
        return make(**options)
    except Exception as error:
        raise ModelFileError(f"hub:{name}", reason=_reason(error), remedy=f"Delete {folder} and try again.") from error


def _snapshot(name: str, folder: Path) -> Path:
    """The folder of a repository in the cache: its ONNX file and what says how it is used."""
    from huggingface_hub import snapshot_download

    files = [f"{place}{file}" for file in MODEL_FILES[:1] for place in ("", "onnx/")]
    wanted = [*_BESIDE, *files, *(f"{file}_data" for file in files), *(f"{file}.data" for file in files)]
    for local in (True, False):
        if not local:
            _ask_hub(name, name)
        try:
            found = Path(snapshot_download(name, allow_patterns=wanted, cache_dir=str(folder), local_files_only=local))
        except Exception as error:  # httpx, OS and hub errors share no class
            if not local:
                raise _unreached(name, name, error) from error
            continue
        # An earlier download may have been cut off.
        if not local or ((found / "tokenizer.json").is_file() and any((found / file).is_file() for file in files)):
            return found
    raise AssertionError("the second round returns or raises")


def _ask_hub(name: str, repository: str) -> None:
    """Whether the hub can be reached and has it, before a download that would try for long."""
    from huggingface_hub import errors, model_info

    try:
        model_info(repository, timeout=_ASK_S)
    except (errors.RepositoryNotFoundError, errors.HFValidationError) as error:
        raise ModelNotFound(
            f"The hub has no model {repository}.",
            remedy="Write hub:OWNER/NAME as on huggingface.co, or give a folder: onnx:FOLDER.",
        ) from error
    except Exception as error:  # httpx, OS and hub errors share no class
        raise _unreached(name, repository, error) from error


def _unreached(name: str, repository: str, error: Exception) -> ModelUnavailable:
    return ModelUnavailable(
        f"The encoder hub:{name} cannot be had from the hub: {_reason(error)}.",
        remedy=f"Where there is a network: `hf download {repository} --local-dir FOLDER`; then use onnx:FOLDER.",
    )


def _reason(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")


def _cache_folder() -> Path:
    if own := os.environ.get("FASTEMBED_CACHE_PATH"):
        return Path(own).expanduser()
    if chosen := os.environ.get("COGNICRAFT_CACHE"):
        return Path(chosen).expanduser() / "hub"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "cognicraft" / "hub"
