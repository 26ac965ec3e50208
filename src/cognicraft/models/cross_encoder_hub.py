"""Cross-encoders by name: from a folder of yours, or from the Hugging Face hub.

Takes: a name (`ms-marco-MiniLM-L-6-v2`, `BAAI/bge-reranker-v2-m3`, any `owner/name` that holds an ONNX cross-encoder)
    or the path of a folder. Returns: a `CrossEncoder`.
Method: a folder of that name is taken as it is. Otherwise `huggingface_hub` fetches what is needed of the repository
    into its own cache (`HF_HOME`), once: what is there is used without asking the network. fastembed's list says which
    repository and file hold the ONNX form of other names; the runner is always ours (`cross_encoder.py`).
Cost: 90 MB for ms-marco-MiniLM-L-6-v2, 2.3 GB for bge-reranker-v2-m3, 570 MB for bge-reranker-v2-m3-int8.
What can go wrong: no network and nothing in the cache (ModelUnavailable), no such repository (ModelNotFound), one
    without an ONNX cross-encoder (ModelFileError), the extra `hub` is absent (MissingExtra). Each names the remedy.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cognicraft.errors import MissingExtra, ModelError, ModelFileError, ModelNotFound, ModelUnavailable
from cognicraft.models.cross_encoder import MODEL_FILES, CrossEncoder

DEFAULT = "ms-marco-MiniLM-L-6-v2"
_TOKENIZER_FILES = ("config.json", "tokenizer.json")
_REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")


@dataclass(frozen=True, slots=True)
class _Place:
    """Where the hub keeps a model. file: its ONNX file; "" for any of the usual names."""

    repository: str
    file: str = ""


_KNOWN: Mapping[str, _Place] = {
    "ms-marco-minilm-l-6-v2": _Place("Xenova/ms-marco-MiniLM-L-6-v2", "onnx/model.onnx"),
    "cross-encoder/ms-marco-minilm-l-6-v2": _Place("Xenova/ms-marco-MiniLM-L-6-v2", "onnx/model.onnx"),
    "baai/bge-reranker-v2-m3": _Place("onnx-community/bge-reranker-v2-m3-ONNX", "onnx/model.onnx"),
    "baai/bge-reranker-v2-m3-int8": _Place("onnx-community/bge-reranker-v2-m3-ONNX", "onnx/model_int8.onnx"),
}


def cross_encoder_named(name: str = "", *, threads: int = 1, max_tokens: int = 512, endpoint: str = "") -> CrossEncoder:
    """The cross-encoder of that name or in that folder; no name is `ms-marco-MiniLM-L-6-v2`.

    threads, max_tokens: as in `CrossEncoder`. endpoint: address of the hub; left out, HF_ENDPOINT or huggingface.co.

    Raises: ModelFileError, ModelUnavailable, ModelNotFound, ModelError, MissingExtra.
    """
    name = name.strip() or DEFAULT
    folder = Path(name).expanduser()
    if folder.is_dir():
        return CrossEncoder(folder, threads=threads, max_tokens=max_tokens)
    place = _KNOWN.get(name.lower())
    if place is None and not _REPOSITORY.fullmatch(name):
        raise ModelFileError(
            name,
            reason="there is no such folder, and it is no name on the hub",
            remedy=f"Give the folder of an ONNX cross-encoder, `{DEFAULT}`, or a name such as BAAI/bge-reranker-v2-m3.",
        )
    place = place or _listed(name) or _Place(name)
    snapshot = _fetched(name, place, endpoint)
    return CrossEncoder(snapshot, name=name, file=place.file, threads=threads, max_tokens=max_tokens)


def _listed(name: str) -> _Place | None:
    """What fastembed knows of the name."""
    try:
        from fastembed.rerank.cross_encoder import TextCrossEncoder
    except ImportError as error:
        raise MissingExtra(name, extra="hub") from error
    for model in TextCrossEncoder.list_supported_models():
        if model["model"].lower() == name.lower() and model["sources"]["hf"]:
            return _Place(model["sources"]["hf"], model["model_file"])
    return None


def _fetched(name: str, place: _Place, endpoint: str) -> Path:
    """The folder of the repository's snapshot in the hub's cache."""
    try:
        from huggingface_hub import errors, snapshot_download
    except ImportError as error:
        raise MissingExtra(name, extra="hub") from error
    files = [place.file] if place.file else [f"{folder}{file}" for file in MODEL_FILES[:1] for folder in ("", "onnx/")]
    # Large models keep their weights beside the graph.
    wanted = [*_TOKENIZER_FILES, *files, *(f"{file}_data" for file in files), *(f"{file}.data" for file in files)]

    def snapshot(*, local: bool) -> Path:
        return Path(
            snapshot_download(
                place.repository, allow_patterns=wanted, local_files_only=local, endpoint=endpoint or None
            )
        )

    try:
        if _whole(kept := snapshot(local=True), files):
            return kept
    except (errors.LocalEntryNotFoundError, ValueError, OSError):
        pass  # not there yet
    remedy = (
        f"Where there is a network: `hf download {place.repository} --local-dir FOLDER`; then give that folder as "
        "search.rerank_model, or set HF_HOME to a cache that holds the model."
    )
    try:
        fetched = snapshot(local=False)
    except errors.GatedRepoError as error:
        raise ModelError(f"The model {name} is only given to those who accepted its terms.", remedy=remedy) from error
    except (errors.RepositoryNotFoundError, errors.HFValidationError) as error:
        raise ModelNotFound(
            f"The hub has no model {place.repository}.",
            remedy=f"Check search.rerank_model: `{DEFAULT}`, OWNER/NAME as on huggingface.co, or a folder.",
        ) from error
    except Exception as error:  # httpx, OS and hub errors share no class
        reason = (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
        raise ModelUnavailable(f"The model {name} cannot be had from the hub: {reason}.", remedy=remedy) from error
    if not _whole(fetched, files):
        needed = ", ".join((*_TOKENIZER_FILES, files[-1]))
        raise ModelFileError(
            name,
            reason=f"the repository {place.repository} holds no ONNX cross-encoder ({needed})",
            remedy="Take one that does, or export it to ONNX and give the folder.",
        )
    return fetched


def _whole(folder: Path, files: list[str]) -> bool:
    """Whether the snapshot holds all that is needed; an earlier download may have been cut off."""
    return all((folder / file).is_file() for file in _TOKENIZER_FILES) and any(
        (folder / file).is_file() for file in files
    )
