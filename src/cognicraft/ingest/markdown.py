"""Read Markdown.

Takes a path; returns one document. Its text is the source itself, so that a citation quotes what the person wrote,
with four exceptions where the marks would be noise to a reader and to a search: headings without `#` or underlines,
code without its fences, table rows as self-describing lines, and HTML blocks as their text. YAML front matter becomes
title and metadata. Method: markdown-it-py (CommonMark and tables), block rules only, by their line spans.
Cost: linear in the lines, nearly all of it in the parser.
What can go wrong: what `text.decode_file` says; bad front matter is a warning.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token

from cognicraft.ingest.assemble import Assembly
from cognicraft.ingest.clean import one_line
from cognicraft.ingest.readoptions import ReadOptions
from cognicraft.ingest.sourcename import source_of
from cognicraft.ingest.tables import linearize
from cognicraft.ingest.text import decode_file
from cognicraft.records import Document, Metadata, MetadataValue

_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(.*?)^(?:---|\.\.\.)[ \t]*$\n?", re.DOTALL | re.MULTILINE)
_MAX_FRONT_MATTER = 65_536
_MAX_FIELDS = 64
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_ANCHOR = re.compile(r"\s*\{#[\w.:-]+\}\s*$|<a\s[^>]*>\s*</a>", re.IGNORECASE)


def read_markdown(path: str, *, options: ReadOptions) -> Iterator[Document]:
    """The one document of a Markdown file."""
    source = source_of(path)
    decoded = decode_file(path, options)
    assembly = Assembly(source, max_characters=options.max_characters)
    assembly.warnings += decoded.warnings
    text, title, metadata = _front_matter(decoded.text, assembly)
    first_heading = add_markdown(assembly, text)
    yield assembly.document(
        source, title=title or first_heading, media_type="text/markdown", metadata=metadata,
        language=str(metadata.get("lang", "")),
    )  # fmt: skip


def add_markdown(assembly: Assembly, text: str) -> str:
    """Add the blocks of a Markdown text; returns its first heading, "" where there is none."""
    parser = MarkdownIt("commonmark").enable("table").disable(["inline"])
    lines = text.split("\n")
    tokens = parser.parse(text)
    title = ""
    index = 0
    while index < len(tokens):
        token = tokens[index]
        end = _closing(tokens, index)
        span = "\n".join(lines[slice(*token.map)]) if token.map else ""
        if token.type == "heading_open":
            heading = _ANCHOR.sub("", tokens[index + 1].content)
            assembly.add("heading", one_line(heading), level=int(token.tag[1]))
            title = title or one_line(heading)
        elif token.type in ("fence", "code_block"):
            assembly.add("code", token.content)
        elif token.type == "table_open":
            assembly.add("table", "\n".join(_table(tokens[index:end])))
        elif token.type == "html_block":
            _add_html(assembly, span)
        elif token.type in ("bullet_list_open", "ordered_list_open"):
            assembly.add("list", _dedent(span))
        elif token.type != "hr":
            assembly.add("paragraph", _COMMENT.sub("", span))
        index = end + 1
    return title


def _closing(tokens: list[Token], index: int) -> int:
    """The index of the token that closes the one at `index`; a token without children closes itself."""
    if tokens[index].nesting != 1:
        return index
    level = tokens[index].level
    end = index + 1
    while not (tokens[end].nesting == -1 and tokens[end].level == level):
        end += 1
    return end


def _table(tokens: list[Token]) -> list[str]:
    head: list[str] = []
    rows: list[list[str]] = []
    for position, token in enumerate(tokens):
        if token.type == "tr_open":
            rows.append([])
        elif token.type in ("th_open", "td_open"):
            cell = tokens[position + 1].content
            (head if token.type == "th_open" else rows[-1]).append(cell)
    return linearize(head, [row for row in rows if row])


def _add_html(assembly: Assembly, span: str) -> None:
    span = _COMMENT.sub("", span)
    if not span.strip():
        return
    from cognicraft.ingest.html import add_html

    add_html(assembly, span)


def _dedent(span: str) -> str:
    """A list as it is written, without the indentation that all of its lines share."""
    lines = span.rstrip().split("\n")
    shared = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    return "\n".join(line[shared:] for line in lines)


def _front_matter(text: str, assembly: Assembly) -> tuple[str, str, Metadata]:
    """The text after the front matter, the title that it gives, and the rest of it as metadata."""
    match = _FRONT_MATTER.match(text) if text.startswith("---") else None
    if match is None or len(match[1]) > _MAX_FRONT_MATTER:
        return text, "", {}
    import yaml  # type: ignore[import-untyped, unused-ignore]

    try:
        fields = yaml.safe_load(match[1])
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        reason = one_line(str(error))[:200]
        assembly.warnings.append(f"The front matter is not valid YAML and is read as text: {reason}")
        return text, "", {}
    if fields is None:
        return text[match.end() :], "", {}
    if not isinstance(fields, dict):  # a thematic break, a line of text and another break
        return text, "", {}
    title = fields.pop("title", "")
    return text[match.end() :], title if isinstance(title, str) else str(title), _flat(fields)


def _flat(fields: dict[Any, Any]) -> Metadata:
    """Short scalars and lists of them, nested keys joined by dots. Bounded: YAML aliases can unfold without end."""
    metadata: dict[str, MetadataValue] = {}
    stack = [(one_line(str(key)), value) for key, value in reversed(fields.items())]
    for _ in range(1_000):
        if not stack or len(metadata) >= _MAX_FIELDS:
            break
        name, value = stack.pop()
        if isinstance(value, dict):
            stack += [(f"{name}.{one_line(str(key))}", child) for key, child in list(value.items())[:_MAX_FIELDS]]
        elif isinstance(value, list | tuple | set):
            scalars = [_scalar(item) for item in list(value)[:_MAX_FIELDS]]
            metadata[name] = tuple(item for item in scalars if item is not None)
        elif (scalar := _scalar(value)) is not None:
            metadata[name] = scalar
    return {name: value for name, value in metadata.items() if value != ()}


def _scalar(value: Any) -> str | int | float | bool | None:
    if isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        return value if abs(value) < 2**63 else str(value)
    if isinstance(value, date):  # a datetime is a date too
        return value.isoformat()
    if isinstance(value, str):
        text = one_line(value)
        return text if text and len(text) <= 500 else None
    return None
