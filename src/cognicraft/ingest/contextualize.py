"""What stands before a chunk when it is encoded, for the dense and for the lexical text apart.

Takes a document and its chunks; returns each with two contexts, which are never part of a quote. Modes:
`none`, and `outline`: the title, the words of the file name and the heading path, each once, less what the
chunk's own text begins with; and `llm`: the outline, then the sentences of a language model, which `context_llm`
makes. Method: our own; why the two arms are given different contexts is measured in docs/decisions/0006.
Cost: linear in the chunks. What can go wrong: a long outline takes tokens of the encoder from a long chunk, so each
line is cut at 120 characters and the whole at 300; of the sentences, the dense text gets as many whole ones as leave
the chunk itself in the encoder's window.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Literal, get_args

from cognicraft.errors import UsageError
from cognicraft.ingest.context_reply import whole_sentences
from cognicraft.records import Chunk, ContextualChunk, Document

ContextMode = Literal["none", "outline", "llm"]

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
    sentences: Sequence[str] | None = None,
    fits: Callable[[Chunk, str], bool] | None = None,
) -> list[ContextualChunk]:
    """One contextual chunk per chunk, in order.

    sentences: of the language model, one entry per chunk, "" for none; needed by the mode `llm`. fits: whether a chunk
    with that context is within what the dense encoders read; sentences that are not are left out of the dense context.
    Raises: UsageError for a mode that does not exist, or `llm` without sentences.
    """
    for arm, mode in (("dense", dense), ("lexical", lexical)):
        if mode not in get_args(ContextMode):
            raise UsageError(
                f'There is no context mode "{mode}" for the {arm} text.',
                remedy=f"Use one of: {', '.join(get_args(ContextMode))}.",
            )
    if "llm" in (dense, lexical) and sentences is None:
        raise UsageError(
            "The contexts of this workspace are written by a language model, and there is none.",
            remedy="Name one in the settings (model.context), or make another workspace with --context outline.",
        )
    words = file_words(document.source)
    head = (document.title, words if _SAYS_SOMETHING.search(words) else "")
    contextual = []
    for number, chunk in enumerate(chunks):
        contexts = {"none": "", "outline": _outline(head, chunk)}
        said = sentences[number] if sentences is not None else ""
        contexts["llm"] = _joined(contexts["outline"], said)
        contextual.append(
            ContextualChunk(
                chunk=chunk,
                dense_context=_fitting(contexts["outline"], said, chunk, fits) if dense == "llm" else contexts[dense],
                lexical_context=contexts[lexical],
            )
        )
    return contextual


def _joined(outline: str, said: str) -> str:
    return "\n".join(part for part in (outline, said) if part)


def _fitting(outline: str, said: str, chunk: Chunk, fits: Callable[[Chunk, str], bool] | None) -> str:
    """The outline with as many whole sentences, from the first, as the encoders read beside the chunk."""
    whole = _joined(outline, said)
    if not said or fits is None or fits(chunk, whole):
        return whole
    shorter = (_joined(outline, part) for part in whole_sentences(said)[1:])
    return next((context for context in shorter if fits(chunk, context)), outline)


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
