"""Opens an ONNX file and a tokenizer file the one way that every model here runs: one thread, none that spins.

Takes: a path. Returns: a session, a tokenizer that neither cuts nor pads. What can go wrong: a file that is absent or
damaged, which is a `ModelFileError` with the caller's remedy.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from cognicraft.errors import ModelFileError

if TYPE_CHECKING:
    import onnxruntime
    import tokenizers


def open_session(path: Path, *, remedy: str) -> onnxruntime.InferenceSession:
    """Raises: ModelFileError."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    # Texts are the unit of parallel work: one thread per run, and none that spins while it waits.
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = 3
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's own exceptions have no common class but Exception
        raise ModelFileError(str(path), reason=_first_line(error), remedy=remedy) from error


def open_tokenizer(path: Path, *, remedy: str) -> tokenizers.Tokenizer:
    """Raises: ModelFileError."""
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises plain Exception
        raise ModelFileError(str(path), reason=_first_line(error), remedy=remedy) from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
