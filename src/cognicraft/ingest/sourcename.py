"""The name of a file as records, messages and JSON carry it: one printable line, and the way back to the path.

A path on disk is bytes; it may hold newlines, escape sequences or bytes that are no UTF-8. Python keeps such bytes as
lone surrogates, which neither JSON nor an engine can store. So in `Document.source` every such byte, and every
control character, is written `\\xHH`; a backslash that would read as one of those is written `\\x5c`. Every other
name is itself, two paths never share a name, and `path_of` undoes it.
"""

from __future__ import annotations

import os
import re

_ESCAPE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]" r"|\\(?=x[0-9a-f]{2})",
)
_ESCAPED = re.compile(r"(?:\\x[0-9a-f]{2})+")


def source_of(path: str | bytes | os.PathLike[str]) -> str:
    """The path with forward slashes, printable, on one line."""
    text = os.fsdecode(path)
    if os.sep == "\\":
        text = text.replace("\\", "/")
    return _ESCAPE.sub(_escape, text)


def path_of(source: str) -> str:
    """The path that `source_of` was given."""
    return _ESCAPED.sub(_unescape, source)


def _escape(match: re.Match[str]) -> str:
    character = match[0]
    try:
        data = os.fsencode(character)
    except UnicodeEncodeError:  # a lone surrogate that stands for no byte
        data = character.encode("utf-8", "surrogatepass")
    return "".join(f"\\x{byte:02x}" for byte in data)


def _unescape(match: re.Match[str]) -> str:
    return os.fsdecode(bytes.fromhex(match[0].replace("\\x", "")))
