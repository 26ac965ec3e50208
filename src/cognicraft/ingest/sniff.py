"""What a file is, from its first bytes.

Takes the first bytes; returns a kind and its name in words, or nothing where the bytes decide nothing. Signatures
are the published ones of each format. Short signatures that ordinary text could begin with (`BM`, `MZ`, `PK`) count
only where the bytes are not text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

HEAD_BYTES = 8192


@dataclass(frozen=True, slots=True)
class Sniffed:
    """`kind` is "" where nothing was recognised; `name` is for messages, with its article."""

    kind: str = ""
    name: str = ""
    is_binary: bool = True


_SURE: tuple[tuple[bytes, str, str], ...] = (
    (b"PK\x03\x04", "zip", "a ZIP archive"),
    (b"PK\x05\x06", "zip", "an empty ZIP archive"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "ole", "an old or encrypted Office file"),
    (b"\x89PNG\r\n\x1a\n", "image", "a PNG picture"),
    (b"\xff\xd8\xff", "image", "a JPEG picture"),
    (b"GIF87a", "image", "a GIF picture"),
    (b"GIF89a", "image", "a GIF picture"),
    (b"II*\x00", "image", "a TIFF picture"),
    (b"MM\x00*", "image", "a TIFF picture"),
    (b"\x7fELF", "program", "a program"),
    (b"\xcf\xfa\xed\xfe", "program", "a program"),
    (b"\xca\xfe\xba\xbe", "program", "compiled code"),
    (b"\x00asm", "program", "compiled code"),
    (b"\x1f\x8b\x08", "archive", "a gzip archive"),
    (b"BZh91AY&SY", "archive", "a bzip2 archive"),
    (b"\xfd7zXZ\x00", "archive", "an xz archive"),
    (b"\x28\xb5\x2f\xfd", "archive", "a zstd archive"),
    (b"7z\xbc\xaf\x27\x1c", "archive", "a 7z archive"),
    (b"Rar!\x1a\x07", "archive", "a RAR archive"),
    (b"SQLite format 3\x00", "database", "an SQLite database"),
    (b"OggS\x00", "media", "a sound or film"),
    (b"\x1aE\xdf\xa3", "media", "a film"),
)
_IF_NOT_TEXT: tuple[tuple[bytes, str, str], ...] = (
    (b"MZ", "program", "a Windows program"),
    (b"BM", "image", "a BMP picture"),
    (b"ID3", "media", "a sound recording"),
    (b"fLaC", "media", "a sound recording"),
    (b"RIFF", "media", "a sound, a film or a WebP picture"),
    (b"PAR1", "database", "a Parquet table"),
    (b"ARROW1", "database", "an Arrow table"),
    (b"wOF", "font", "a font"),
)
_HTML = re.compile(rb"\s*(?:<\?xml[^>]*>\s*)?(?:<!--.*?-->\s*)*<(?:!doctype\s+html|html|head|body)[\s>]", re.I | re.S)


def sniff(head: bytes) -> Sniffed:
    """What the first `HEAD_BYTES` bytes show."""
    # Readers of PDF accept junk before the header, within the first 1024 bytes; text that quotes it does not begin so.
    at = head.find(b"%PDF-", 0, 1024)
    if at >= 0 and _is_pdf(head[at:], junk=head[:at]):
        return Sniffed("pdf", "a PDF")
    for signature, kind, name in _SURE:
        if head.startswith(signature):
            return Sniffed(kind, name)
    if b"\x00" in head:
        for signature, kind, name in _IF_NOT_TEXT:
            if head.startswith(signature):
                return Sniffed(kind, name)
        if head[4:8] == b"ftyp":
            return Sniffed("media", "a film or a sound recording")
    if _HTML.match(head.removeprefix(b"\xef\xbb\xbf")):
        return Sniffed("html", "HTML", is_binary=False)
    return Sniffed()


def _is_pdf(rest: bytes, *, junk: bytes) -> bool:
    if not junk:
        return bool(re.match(rb"%PDF-\d", rest))
    return b"\x00" in junk or bool(re.match(rb"%PDF-\d\.\d[\r\n]+(?:%|\d+ \d+ obj)", rest))
