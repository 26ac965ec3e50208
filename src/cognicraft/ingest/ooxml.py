"""Open an Office file (DOCX, XLSX, PPTX) safely: they are ZIP archives of XML.

Takes a path; returns nothing where the archive may be parsed. What it would unpack to is bounded before a parser sees
it. The sizes that an archive declares can be believed as a bound: the standard library stops a member at its declared
size and then fails its checksum. Cost: the directory of the archive is read, not its members.
What can go wrong: `EncryptedFile` (a password turns the archive into an OLE container), `UnsupportedFile` (the binary
formats of before 2007 are OLE too), `CorruptFile` (no archive, or not of this kind), `FileTooLarge` (a bomb).
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cognicraft.errors import CogniCraftError, CorruptFile, EncryptedFile, FileTooLarge, UnsupportedFile
from cognicraft.ingest.load import cannot_open, check_file
from cognicraft.ingest.readoptions import ReadOptions
from cognicraft.ingest.sourcename import source_of

_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_ENCRYPTED = "EncryptedPackage".encode("utf-16-le")
_UNPACKED_TIMES = 10
_MAX_MEMBERS = 20_000


def check_archive(path: str, *, options: ReadOptions, part: str, kind: str) -> None:
    """Raise unless `path` is a ZIP archive of bounded size that has the member `part`; `kind` is for messages.

    Raises: EncryptedFile, UnsupportedFile, CorruptFile, FileTooLarge, Unreadable, EmptyFile.
    """
    check_file(path, max_bytes=options.max_bytes)
    source = source_of(path)
    try:
        with Path(path).open("rb") as stream:
            if stream.read(8) == _OLE:
                raise _ole(source, encrypted=_ENCRYPTED in stream.read(), kind=kind)
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
    except OSError as error:
        raise cannot_open(path, error) from error
    except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
        raise damaged(source, kind, error) from error
    limit = options.max_bytes * _UNPACKED_TIMES
    unpacked = sum(member.file_size for member in members)
    if unpacked > limit or len(members) > _MAX_MEMBERS:
        raise FileTooLarge(
            f"{source} would unpack to {unpacked / 1e6:,.0f} MB in {len(members):,} parts; the limit is "
            f"{limit / 1e6:,.0f} MB in {_MAX_MEMBERS:,}.",
            remedy="If the file can be trusted, raise max_file_mb.",
        )
    if any(member.flag_bits & 1 for member in members):
        raise EncryptedFile(f"{source} is an encrypted archive.", remedy="Save it without a password.")
    if part not in {member.filename for member in members}:
        raise CorruptFile(
            f"{source} is a ZIP archive, but not {kind}.", remedy="Give it the extension that fits, or save it again."
        )


@contextmanager
def parsing(source: str, kind: str) -> Iterator[None]:
    """Turn whatever a parser of damaged input raises into `CorruptFile`; our own errors and lack of memory pass."""
    try:
        yield
    except (CogniCraftError, MemoryError):
        raise
    # These parsers raise KeyError, ValueError, XMLSyntaxError, BadZipFile and more, by what is damaged.
    except Exception as error:
        raise damaged(source, kind, error) from error


def damaged(source: str, kind: str, error: Exception) -> CorruptFile:
    reason = " ".join(str(error).split())[:200] or type(error).__name__
    return CorruptFile(
        f"{source} is damaged or not {kind}: {reason}.", remedy="Open it in its program and save it again."
    )


def _ole(source: str, *, encrypted: bool, kind: str) -> EncryptedFile | UnsupportedFile:
    if encrypted:
        return EncryptedFile(f"{source} asks for a password.", remedy="Save it without a password.")
    return UnsupportedFile(f"{source} has the binary format of Office 97 to 2003.", remedy=f"Save it again as {kind}.")
