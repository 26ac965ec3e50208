"""Watches a reply for the word by which a model says that the documents do not tell.

Takes: pieces of a reply, cut anywhere. Returns: the pieces without that word, as soon as it is certain that they are
no part of it. Method: one character at a time; held back is what may still become the word. It is known also with
spaces, escaped underscores or in small letters, as models write it (`NOT IN DOCUMENTS`, `not_in_documents`).
Cost: linear. What can go wrong: a model that writes it and answers all the same is not heard (`generate.py`).
"""

from __future__ import annotations

SENTINEL = "NOT_IN_DOCUMENTS"
"""What a model replies where the passages do not tell; the same in every language."""

_AROUND = "*_\"'`“”‘’«»([{<#>."


class SentinelWatch:
    """seen: the word came. leading: it came before anything else was said; what follows it is not given back."""

    def __init__(self) -> None:
        self.seen = False
        self.leading = False
        self._said = False
        self._held = ""
        self._decoration = ""

    def feed(self, piece: str) -> str:
        return "".join(self._take(character) for character in piece)

    def close(self) -> str:
        """What was held back; nothing more comes."""
        held, self._held = self._held, ""
        if self.leading:
            return ""
        return self._given(held)

    def _take(self, character: str) -> str:
        if self.leading:
            return ""
        self._held += character
        if _begins(self._held) and len(self._held.replace("\\", "")) == len(SENTINEL):
            self._held = ""
            self.seen = True
            self.leading = not self._said
            return " " if self._said else ""  # so that what stood around it does not become the word
        if _begins(self._held):
            return ""
        # The longest end of what was held that may still become the word stays held.
        for start in range(1, len(self._held) + 1):
            if _begins(self._held[start:]):
                given, self._held = self._held[:start], self._held[start:]
                return self._given(given)
        raise AssertionError("nothing at all is the beginning of every word")

    def _given(self, text: str) -> str:
        """Decoration before the first word waits for it: `**NOT_IN_DOCUMENTS**` says nothing else."""
        if self._said:
            return text
        text = self._decoration + text
        if all(character.isspace() or character in _AROUND for character in text):
            self._decoration = text
            return ""
        self._decoration = ""
        self._said = True
        return text


def _begins(text: str) -> bool:
    """Whether it is a beginning of the word: with underscores in any case, with spaces in capitals."""
    bare = text.replace("\\", "")
    if " " in bare:
        return SENTINEL.replace("_", " ").startswith(bare)
    return SENTINEL.startswith(bare.upper())
