"""Make any decoded text fit to be stored, searched and quoted.

Takes a string from any reader; returns it with newlines as `\\n` and without the characters that no reader of a
document ever sees: control characters, byte order marks, soft hyphens, lone surrogates (which become U+FFFD).
Cost: one scan of the text; nothing is copied where nothing has to change. It cannot fail.
"""

from __future__ import annotations

import re

# Vertical tab, form feed, NEL and the two Unicode separators end a line for a person, so they do here.
_LINE_ENDS = re.compile("\r\n|[\r\x0b\x0c\x85\u2028\u2029]")
# A soft hyphen marks where a word *may* be broken: left in, it splits the word for every search.
_INVISIBLE = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\u00ad\ufeff\ufffe\uffff]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_ANSI = re.compile("\x1b(?:\\[[0-9;?]*[ -/]*[@-~]|\\][^\x07\x1b]*(?:\x07|\x1b\\\\))")
_SPACES = re.compile(r"\s+")
_RAISED = str.maketrans("0123456789+-−=()n", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁼⁽⁾ⁿ")
_CAN_BE_RAISED = frozenset("0123456789+-−=()n")


def clean(text: str) -> str:
    """`text` with unified newlines and no invisible control characters; terminal colour codes are removed whole."""
    if "\x1b" in text:
        text = _ANSI.sub("", text)
    text = _LINE_ENDS.sub("\n", text)
    text = _INVISIBLE.sub("", text)
    return _SURROGATE.sub("\ufffd", text)


def one_line(text: str) -> str:
    """`text` cleaned, with every run of white space as one blank: for titles, labels and table cells."""
    return _SPACES.sub(" ", clean(text)).strip()


def raised(text: str) -> str:
    """`text` in superscript characters where there are such: a footnote mark or a power must not join its number.

    `40,665` with a raised `1` is `40,665¹` and not `40,6651`; a raised `th` stays as it is.
    """
    return text.translate(_RAISED) if _CAN_BE_RAISED.issuperset(text.strip()) else text
