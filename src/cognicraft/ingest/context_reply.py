"""A model's reply to the few sentences that place a chunk, or nothing where it is of no use.

Takes: the reply, whether it was cut at the token limit, and the chunk's text. Returns: at most four sentences in one
line, or "" for an empty, broken or evasive reply. Method: rules, our own: reasoning, fences, tags, lead-ins ("Here is
the context:") and quotation marks come off; what is too long ends at a sentence. Cost: microseconds. What can go wrong:
a lead-in in a language without a rule stays in; it does no harm, for contexts are never quoted.
"""

from __future__ import annotations

import re
from collections import Counter

from cognicraft.ingest.sentences import sentences

MOST_SENTENCES = 4
MOST_CHARACTERS = 900
_FEWEST_LETTERS = 12

_THINKING = re.compile(r"<(think|thinking|reasoning)>.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)
_FENCE = re.compile(r"^\s*```[\w-]*\s*$", re.MULTILINE)
_TAG = re.compile(r"</?(?:context|chunk|answer|response|output|result|passage|document|text)\b[^<>\n]{0,80}>", re.I)
_MARK = re.compile(r"^\s*(?:#{1,6}\s+|>\s+|[-*•]\s+|\d{1,2}[.)]\s+)", re.MULTILINE)
_BOLD = re.compile(r"(\*\*|__)(?=\S)(.+?)(?<=\S)\1")
# One line that only announces what follows, or a label before it.
_LEAD_IN = re.compile(
    r"""^\s*(?:(?:sure|certainly|of\ course|okay|ok)\b[^\n:]{0,40}[!,.:]\s*)?
    (?:
        (?:here(?:'s|’s|\ is|\ are)|this\ is|the\ following(?:\ is|\ are)?|below\ is)\b
            [^\n:.]{0,160}\b(?:context|sentences?|summary|description|placement|passage|chunk|excerpt)\b[^\n:.]{0,120}:
        |(?:short\ |succinct\ |brief\ |the\ )?(?:context|summary|answer|output|response)(?:ual\ \w+)?\s*:
        |(?:sure|certainly|of\ course)\b[^\n:]{0,40}:
    )\s*""",
    re.IGNORECASE | re.VERBOSE,
)
_EVASION = re.compile(
    r"""^(?:i['’]?m\ sorry|i\ am\ sorry|sorry,|unfortunately,\ i\b|as\ an\ ai\b|as\ a\ language\ model\b
        |i\ (?:cannot|can['’]t|can\ not|am\ unable|am\ not\ able)\b|please\ provide\b)""",
    re.IGNORECASE | re.VERBOSE,
)


def clean_reply(reply: str, *, cut: bool, chunk_text: str) -> str:
    """The sentences to put before the chunk, in one line; "" for a reply of no use.

    cut: the reply was ended by its token limit: its last, unfinished sentence goes, unless it is the only one.
    """
    text = _THINKING.sub(" ", reply)
    text = _TAG.sub(" ", _FENCE.sub("", text))
    text = _LEAD_IN.sub("", text.strip(), count=1)
    text = _BOLD.sub(r"\2", _MARK.sub("", text))
    text = " ".join(text.split()).strip()
    while len(text) > 1 and text[0] + text[-1] in ('""', "''", "“”", "«»", "„“", "``"):
        text = text[1:-1].strip()
    text = _LEAD_IN.sub("", text, count=1)
    if _of_no_use(text, chunk_text):
        return ""
    spans = sentences(text)
    if cut and len(spans) > 1 and not _ends(text):
        spans = spans[:-1]
    kept = 0
    for _, end in spans[:MOST_SENTENCES]:
        if end > MOST_CHARACTERS:
            break
        kept = end
    if not kept:  # one endless sentence: to the last whole word
        kept = text.rfind(" ", 0, MOST_CHARACTERS) if len(text) > MOST_CHARACTERS else len(text)
        kept = kept if kept > 0 else MOST_CHARACTERS
    return text[:kept].rstrip()


def whole_sentences(text: str) -> list[str]:
    """The text from its beginning to the end of each sentence, longest first: for fitting it into a window."""
    return [text[:end] for _, end in reversed(sentences(text))]


def _ends(text: str) -> bool:
    return text.rstrip("\"'”’»)]")[-1:] in tuple(".!?…。！？।")


def _of_no_use(text: str, chunk_text: str) -> bool:
    letters = sum(character.isalpha() for character in text)
    # Scripts without spaces say more with a letter.
    enough = _FEWEST_LETTERS if text.isascii() else _FEWEST_LETTERS // 2
    if letters < enough or letters < 0.4 * len(text.replace(" ", "")):
        return True
    if _EVASION.match(text):
        return True
    words = text.lower().split()
    if len(words) >= 8 and Counter(words).most_common(1)[0][1] > 0.5 * len(words):
        return True  # one word over and over
    return " ".join(chunk_text.split()).startswith(text)  # the chunk given back
