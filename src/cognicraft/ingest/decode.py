"""Bytes to text: which encoding, or is it no text at all?

Takes the bytes of a file that claims to be text; returns the text and the name of its encoding. In order: the
encoding that the caller insists on; a byte order mark; UTF-16 and UTF-32 without one (by where the zero bytes stand);
UTF-8; the encoding that the file declares; what charset-normalizer finds most coherent. UTF-8 goes before a
declaration because text that is valid UTF-8 by accident is rare, and a wrong declaration is not.
Cost: one pass for UTF-8; detection, which also loads the language model, reads a sample of 128 kB.
What can go wrong: `BinaryFile` where it is no text,
`CorruptFile` where the encoding that was insisted on does not fit, `UsageError` where that encoding is unknown.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass

from cognicraft.errors import BinaryFile, CorruptFile, UsageError

_SAMPLE_BYTES = 131_072
_SHORT_BYTES = 200
_MAX_CONTROL_SHARE = 0.005
_CONTROL = re.compile("[\x00-\x06\x0e-\x1a\x1c-\x1f\x7f]")
_CONTROL_BYTES = bytes([*range(0x00, 0x07), *range(0x0E, 0x1B), *range(0x1C, 0x20), 0x7F])
# UTF-32 first: its little-endian mark begins with the one of UTF-16.
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig", "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32", "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32", "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16", "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16", "utf-16"),
)

# The encodings that files are found in; the others only offer chances to be wrong about a short text.
_IN_USE = [
    "cp1252", "cp1250", "cp1251", "koi8_r", "koi8_u", "cp1253", "cp1254", "cp1255", "cp1256", "cp1257", "cp1258",
    "cp874", "cp932", "euc_jp", "iso2022_jp", "gb18030", "big5", "cp949", "cp866", "mac_roman", "cp850",
]  # fmt: skip
_LATIN: dict[str, frozenset[str]] = {
    "cp1252": frozenset({"de", "en", "es", "fr", "it", "nl", "pt", "sv", "da", "no", "fi", "ca", "is", "id"}),
    "cp1250": frozenset({"pl", "cs", "sk", "hu", "ro", "hr", "sl"}),
    "cp1254": frozenset({"tr"}),
    "cp1257": frozenset({"lv", "lt", "et"}),
    "mac_roman": frozenset(),
    "cp850": frozenset(),
}

# Browsers read these labels as windows-1252, and so mean those who write them.
_MEANING_1252 = frozenset({"iso-8859-1", "latin-1", "latin1", "us-ascii", "ascii"})


@dataclass(frozen=True, slots=True)
class Decoded:
    """Text with the encoding it was in, and what a person should know about the decoding."""

    text: str
    encoding: str
    warnings: tuple[str, ...] = ()


def decode(data: bytes, *, name: str, encoding: str = "", declared: str = "") -> Decoded:
    """The text in `data`; `name` is what messages call the file.

    encoding: insisted on by the person. declared: by the file itself, such as an HTML charset; used if it fits.
    Raises: BinaryFile, CorruptFile, UsageError.
    """
    if encoding:
        return _insisted(data, name, encoding)
    for mark, codec, label in _MARKS:
        if data.startswith(mark):
            return _marked(data, codec, label, name)
    if b"\x00" in data:
        wide = _wide(data)
        if wide is None:
            raise binary(name, "it holds zero bytes")
        return wide
    decoded = _utf8(data)
    if decoded is None and declared:
        decoded = _try(data, declared)
    if decoded is None:
        if _control_share(data[:_SAMPLE_BYTES]) > _MAX_CONTROL_SHARE:
            raise binary(name, "it is full of control characters")
        decoded = _detected(data)
    if decoded is None:
        raise binary(name, "its bytes make no text in any known encoding")
    sample = decoded.text[:_SAMPLE_BYTES]
    if sample and len(_CONTROL.findall(sample)) / len(sample) > _MAX_CONTROL_SHARE:
        raise binary(name, "it is full of control characters")
    return decoded


def binary(name: str, reason: str) -> BinaryFile:
    return BinaryFile(
        f"{name} is not text: {reason}.",
        remedy="Convert it to one of the supported formats, give the encoding, or leave it out.",
    )


def looks_binary(data: bytes) -> bool:
    """Whether the beginning of a file (a few kB) is surely not text in any encoding."""
    if data.startswith(tuple(mark for mark, _, _ in _MARKS)):
        return False
    if b"\x00" in data:
        return _wide(data[: len(data) // 4 * 4]) is None
    return _control_share(data) > _MAX_CONTROL_SHARE


def _control_share(data: bytes) -> float:
    return (len(data) - len(data.translate(None, _CONTROL_BYTES))) / len(data) if data else 0.0


def _insisted(data: bytes, name: str, encoding: str) -> Decoded:
    try:
        text = data.decode(encoding)
    except LookupError as error:
        raise UsageError(
            f"There is no encoding {encoding!r}.", remedy="Use a name such as utf-8, windows-1252 or shift_jis."
        ) from error
    except (UnicodeError, ValueError) as error:
        where = f" at byte {error.start}" if isinstance(error, UnicodeDecodeError) else ""
        raise CorruptFile(
            f"{name} is not valid {encoding}{where}.", remedy="Leave the encoding out, so that it is found."
        ) from error
    return Decoded(text, encoding)


def _marked(data: bytes, codec: str, label: str, name: str) -> Decoded:
    try:
        return Decoded(data.decode(codec), label)
    except UnicodeDecodeError as error:
        text = data.decode(codec, "replace")
        bad = text.count("\ufffd")
        if bad > max(2, len(text) // 1000):
            raise binary(name, f"it begins like {label}, but goes on otherwise") from error
        return Decoded(text, label, (f"{bad} characters are damaged and shown as \ufffd.",))


def _wide(data: bytes) -> Decoded | None:
    """UTF-16 or UTF-32 without a mark. Blanks and line ends (U+0020, U+000A) tell the width and the order of bytes."""
    best: tuple[float, str] | None = None
    sample = data[: min(len(data), _SAMPLE_BYTES) // 4 * 4 or len(data)]
    for codec, width in (("utf-32-le", 4), ("utf-32-be", 4), ("utf-16-le", 2), ("utf-16-be", 2)):
        if len(data) % width:
            continue
        try:
            text = sample.decode(codec)
        except UnicodeDecodeError as error:
            # The sample may end inside a surrogate pair.
            if error.start < len(sample) - width or error.start == 0:
                continue
            text = sample[: error.start].decode(codec)
        score = _plausible(text)
        if score > 0.9 and (best is None or score > best[0]):
            best = (score, codec)
    if best is None:
        return None
    try:
        return Decoded(data.decode(best[1]), best[1])
    except UnicodeDecodeError:
        return None


def _plausible(text: str) -> float:
    """Share of the characters that a text would have; 0 where one has none of the usual white space or letters."""
    if not text:
        return 0.0
    letters = sum(character.isalpha() or character.isdigit() for character in text)
    spaces = sum(text.count(space) for space in " \n\r\t\u3000\u3001\u3002")
    marks = sum(character.isprintable() and not character.isalnum() for character in text)
    if not letters or (not spaces and len(text) > 64):
        return 0.0
    # The wrong order of bytes turns blanks into U+2000 and ASCII letters into rare ideographs of many rows.
    rows = len({ord(character) >> 8 for character in text if character.isalpha()})
    variety = 1.0 if rows <= 4 else max(0.0, 1.0 - (rows - 4) / (len(text) + 1))
    share = (letters + spaces + marks) / len(text)
    ascii_share = sum(character.isascii() for character in text) / len(text)
    return share * (0.95 + 0.05 * ascii_share) * (variety if not spaces else 1.0)


def _utf8(data: bytes) -> Decoded | None:
    try:
        return Decoded(data.decode("utf-8"), "utf-8")
    except UnicodeDecodeError as error:
        if error.start >= len(data) - 3 and error.start > 0 and error.reason == "unexpected end of data":
            text = data[: error.start].decode("utf-8")
            # ASCII with one strange last byte is rather an old encoding than a file cut in a character.
            if not text.isascii():
                return Decoded(text, "utf-8", ("The file ends in the middle of a character.",))
            return None
    text = data.decode("utf-8", "replace")
    bad = text.count("\ufffd")
    good = sum(1 for character in text if character > "\x7f") - bad
    if good >= 20 * bad:
        return Decoded(text, "utf-8", (f"{bad} bytes are not UTF-8 and are shown as \ufffd.",))
    return None


def _try(data: bytes, encoding: str) -> Decoded | None:
    label = encoding.strip().lower()
    if label in _MEANING_1252:
        label = "windows-1252"
    try:
        return Decoded(data.decode(label), label)
    except (LookupError, UnicodeError, ValueError):
        return None


def _detected(data: bytes) -> Decoded | None:
    from charset_normalizer import from_bytes

    sample = data
    if len(data) > _SAMPLE_BYTES:
        # Where the text is not ASCII is what tells; a licence in English at the top tells nothing.
        first = re.search(rb"[\x80-\xff]", data)
        start = max(0, (first.start() if first else 0) - 4096)
        sample = data[start : start + _SAMPLE_BYTES]
    best = from_bytes(sample, cp_isolation=_IN_USE).best()
    mostly_ascii = sum(byte < 0x80 for byte in sample) > 0.7 * len(sample)
    if best is None:
        # Repetitive texts are taken for noise; a language that shows clearly says that they are none.
        encoding = _latin(sample) if mostly_ascii else None
    elif best.encoding in _LATIN or (mostly_ascii and not best.coherence and len(sample) < _SHORT_BYTES):
        encoding = _latin(sample) or "cp1252"
    else:
        encoding = best.encoding
    if encoding is None:
        return None
    try:
        return Decoded(data.decode(encoding), encoding)
    except UnicodeDecodeError:
        text = data.decode(encoding, "replace")
        bad = text.count("\ufffd")
        if bad > max(2, len(text) // 1000):
            return None
        return Decoded(text, encoding, (f"{bad} bytes are not {encoding} and are shown as \ufffd.",))


def _latin(sample: bytes) -> str | None:
    """Which of the Latin code pages: the one in which the text is most clearly in some language.

    They differ in a few letters, which no statistics of bytes tells apart in a short text; `Seńor Muńoz` is not
    Spanish, though, and `Señor Muñoz` is. None where nothing is clear.
    """
    from cognicraft.ingest.language import detect_question

    telling = b"\n".join(line for line in sample.split(b"\n") if not line.isascii())[:4000]
    best: str | None = None
    best_score = 0.0
    for encoding, languages in _LATIN.items():
        try:
            found = detect_question(telling.decode(encoding), among=())
        except UnicodeDecodeError:
            continue
        # Clear in two of them: the letters that differ do not occur, or are rare; go by what is usual there.
        score = found.confidence + (0.02 if found.code in languages else 0.01 if encoding == "cp1252" else 0.0)
        if score > best_score and found.confidence >= 0.5:
            best, best_score = encoding, score
    return best
