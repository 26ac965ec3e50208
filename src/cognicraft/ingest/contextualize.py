"""What stands before a chunk when it is encoded, for the dense and for the lexical text apart.

Takes a document and its chunks; returns each with two contexts, which are never part of a quote. Modes:
`none`, and `outline`: the title, the words of the file name and the heading path, each once, less what the
chunk's own text begins with. Method: our own; why the two arms are given different contexts is measured in
docs/decisions/0006. Cost: linear in the chunks. What can go wrong: a long outline takes tokens of the
encoder from a long chunk, so each line is cut at 120 characters and the whole at 300.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, get_args

from cognicraft.errors import UsageError
from cognicraft.records import Chunk, ContextualChunk, Document

ContextMode = Literal["none", "outline"]

_LONGEST_LINE = 120
_LONGEST_OUTLINE = 300
_SEPARATORS = re.compile(r"[\s_+~,;()\[\]{}]+|(?<=\w)-(?=\w)|%20")
_EXTENSION = re.compile(r"(?:\.[A-Za-z][A-Za-z0-9]{0,5}){1,2}$")
# ACME|2021|Q2, tenQ stays: letters and digits part only where a year or a run of capitals makes the border sure.
_CASE_BORDER = re.compile(r"(?<=[a-z])(?=[A-Z][a-z])|(?<=[A-Za-z])(?=(?:19|20)\d\d(?!\d))|(?<=(?:19|20)\d\d)(?=[A-Z])")

# A name of digits or of a hash only numbers the file; a year still dates it.
_SAYS_SOMETHING = re.compile(r"(?!\b[0-9a-fA-F]{8,}\b)\b\w*[^\W\d_]|\b(?:19|20)\d\d\b")


def contextualize(
    document: Document,
    chunks: Sequence[Chunk],
    *,
    dense: ContextMode = "outline",
    lexical: ContextMode = "outline",
) -> list[ContextualChunk]:
    """One contextual chunk per chunk, in order. Raises: UsageError for a mode that does not exist."""
    for arm, mode in (("dense", dense), ("lexical", lexical)):
        if mode not in get_args(ContextMode):
            raise UsageError(
                f'There is no context mode "{mode}" for the {arm} text.',
                remedy=f"Use one of: {', '.join(get_args(ContextMode))}.",
            )
    words = file_words(document.source)
    head = (document.title, words if _SAYS_SOMETHING.search(words) else "")
    contextual = []
    for chunk in chunks:
        outline = _outline(head, chunk) if "outline" in (dense, lexical) else ""
        contextual.append(
            ContextualChunk(
                chunk=chunk,
                dense_context=outline if dense == "outline" else "",
                lexical_context=outline if lexical == "outline" else "",
            )
        )
    return contextual


def file_words(source: str) -> str:
    """The last part of a path or URI as words: `reports/ACME_2021Q2_10-Q.pdf` gives `ACME 2021 Q2 10 Q`."""
    name = re.split(r"[/\\]", source.split("#")[0].split("?")[0].rstrip("/\\"))[-1]
    name = _EXTENSION.sub("", name) or name
    words = _CASE_BORDER.sub(" ", _SEPARATORS.sub(" ", name))
    return " ".join(word.strip(".") for word in words.split() if word.strip("."))


def _outline(head: Sequence[str], chunk: Chunk) -> str:
    """The lines that say something not yet said, above each other, outermost first."""
    text = _bare(chunk.text[: 2 * _LONGEST_OUTLINE])
    lines: list[str] = []
    room = _LONGEST_OUTLINE
    for line in (*head, *chunk.heading_path):
        line = " ".join(line.split())
        bare = _bare(line)
        if not bare or text.startswith(bare) or any(bare in _bare(other) for other in lines):
            continue
        line = line[:_LONGEST_LINE].rstrip()
        if len(line) > room:
            break
        room -= len(line)
        lines.append(line)
    return "\n".join(lines)


def _bare(text: str) -> str:
    """Lower-case words only, so that `# Title` and `Title` are seen to be one."""
    return " ".join(re.findall(r"\w+", text.lower()))
