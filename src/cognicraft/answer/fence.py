"""Passages between marks that no document can write, so that a model can tell quotation from request.

Takes: texts of documents, as they are. Returns: the same texts fit to stand in a prompt, each between two lines that
carry a mark. Method: the mark is derived from all texts together and occurs in none of them; what looks like a mark, a
citation or a control token of a chat format (some servers obey those wherever they stand) is written with other
brackets of the same length, so positions stay the same. The quotes a person sees come from the original. Cost: linear.
What can go wrong: a model may still follow an order that it reads; the fence tells it not to, nothing can force it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from cognicraft.answer.citation_forms import CITATION
from cognicraft.answer.sentinel import SENTINEL
from cognicraft.records import digest

MAX_ATTRIBUTE_CHARACTERS = 160
_MARK_BYTES = 4
_IMITATED_MARK = re.compile(
    r"<{2,}(?=\s*/?\s*(?:end\b|passages?\b|examples?\b))|[＜《«‹]{2,}(?=\s*/?\s*(?:end\b|passages?\b))", re.IGNORECASE
)
# `<|im_start|>`, `<｜User｜>`, `<start_of_turn>`, `</s>`, `<<SYS>>`, `<bos>`: the first bracket gives way.
_CONTROL_TOKEN = re.compile(
    r"<(?=[|｜])|<(?=/?(?:s|bos|eos|pad|unk|start_of_turn|end_of_turn|system|assistant|user|think|eot|eom)>)"
    r"|<(?=<?/?SYS>)",
    re.IGNORECASE,
)
_CLOSING_TOKEN = re.compile(r"(?<=[|｜])>")
_INSTRUCTION_TOKEN = re.compile(
    r"\[(/?(?:INST|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|SYSTEM_PROMPT))\]", re.IGNORECASE
)
_SENTINEL = re.compile(SENTINEL, re.IGNORECASE)
# Control characters, letters that cannot be seen and are used to hide orders, and halves of characters.
_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f\u200e\u200f\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f\ud800-\udfff]")


def mark_for(texts: Iterable[str]) -> str:
    """Eight hexadecimal digits that occur in none of the texts, the same for the same texts."""
    listed = list(texts)
    turn = 0
    while True:
        mark = digest(*listed, str(turn), size=_MARK_BYTES)
        if not any(mark in text.lower() for text in listed):
            return mark
        turn += 1


def harmless(text: str) -> str:
    """The text without marks, citations, control tokens and unseen characters; every position stays the same."""
    text = _UNSEEN.sub("\ufffd", text)
    text = _IMITATED_MARK.sub(lambda found: "‹" * len(found[0]), text)
    text = _CONTROL_TOKEN.sub("‹", text)
    text = _CLOSING_TOKEN.sub("›", text)
    text = _INSTRUCTION_TOKEN.sub(r"⟦\1⟧", text)
    # A passage that holds the word would have it copied into the reply, where it means something.
    text = _SENTINEL.sub(lambda found: found[0].replace("_", "-"), text)
    return CITATION.sub(lambda found: f"⟦{found[0][1:-1]}⟧", text)


def one_line(text: str, *, limit: int = MAX_ATTRIBUTE_CHARACTERS) -> str:
    """The text harmless and in one line, cut to `limit` characters, without double quotes and brackets of marks."""
    bare = " ".join(harmless(text).split()).replace('"', "'").replace("<<", "‹‹").replace(">>", "››")
    return bare if len(bare) <= limit else bare[: limit - 1].rstrip() + "…"


def fenced(number: int, text: str, *, mark: str, attributes: Sequence[tuple[str, str]]) -> str:
    """A passage between its two marks; attributes that are empty are left out."""
    told = "".join(f' {name}="{one_line(value)}"' for name, value in attributes if value)
    return f"<<passage {number} {mark}{told}>>\n{harmless(text)}\n<<end of passage {number} {mark}>>\n"
