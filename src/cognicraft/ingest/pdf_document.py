"""Put the blocks of all pages together into one text with spans.

Takes: blocks per page. Returns: the text, pages that tile it, and blocks with their places.
Method: blank lines between blocks; a paragraph that runs over the end of a page is one block, with the page break at
the first character of the new page. Cost: linear. What can go wrong: nothing that blocks can hold.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from cognicraft.ingest.pdf_blocks import TextBlock
from cognicraft.ingest.pdf_words import HYPHEN_MARK, joint
from cognicraft.records import Block, Page


def assemble(
    pages: Sequence[Sequence[TextBlock]],
    *,
    levels: Mapping[tuple[int, bool], int],
    occurs: Callable[[str], bool],
) -> tuple[str, tuple[Page, ...], tuple[Block, ...]]:
    """The text, its pages and its blocks. levels: of heading styles, where no bookmark gave one."""
    parts: list[str] = []
    size = 0
    starts: list[int] = []
    places: list[Block] = []
    last: TextBlock | None = None
    for blocks in pages:
        starts.append(size)
        for number, block in enumerate(blocks):
            text = block.text.replace(HYPHEN_MARK, "-")
            if number == 0 and last is not None and last.open_end and _runs_on(block):
                cut, between = joint(parts[-1], text, occurs=occurs)
                parts[-1] = parts[-1][: len(parts[-1]) - cut]
                size += len(between) - cut
                starts[-1] = size
                parts.append(between + text)
                size += len(text)
                places[-1] = Block(places[-1].kind, places[-1].start, size)
                last = block
                continue
            separator = "\n\n" if parts else ""
            start = size + len(separator)
            if number == 0:
                starts[-1] = start if parts else 0
            parts.append(separator + text)
            size = start + len(text)
            level = 0
            if block.kind == "heading":
                level = block.level or levels.get(block.style or (0, False), 1)
            places.append(Block(block.kind, start, size, level))
            last = block
    spans = tuple(
        Page(number + 1, start, starts[number + 1] if number + 1 < len(starts) else size)
        for number, start in enumerate(starts)
    )
    return "".join(parts), spans, tuple(places)


def _runs_on(block: TextBlock) -> bool:
    return block.kind == "paragraph" and block.text[:1].islower()
