"""Read HTML.

Takes a path; returns one document: the main text with headings, lists, code and tables, what a reader of the page
sees, in its order. Navigation, scripts, forms and hidden elements are left out; where the page marks its main part
(`<main>`, `role=main`), that part is the text. Method: lexbor through selectolax builds the tree as browsers do; one
walk over it, without recursion, so that no depth of nesting breaks it. Cost: linear in the elements; but the parser
is quadratic in the depth of open blocks, which is therefore bounded.
What can go wrong: what `text.decode_file` says; `EmptyFile` where nothing is left; `CorruptFile` where elements are
nested thousands deep.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from selectolax.lexbor import LexborHTMLParser, LexborNode

from cognicraft.errors import CorruptFile
from cognicraft.ingest.assemble import Assembly
from cognicraft.ingest.clean import clean, one_line, raised
from cognicraft.ingest.decode import decode
from cognicraft.ingest.htmltable import is_layout, table_lines
from cognicraft.ingest.load import load
from cognicraft.ingest.readoptions import ReadOptions
from cognicraft.ingest.sourcename import source_of
from cognicraft.ingest.text import check_length
from cognicraft.records import Document, MetadataValue

_CHARSET = re.compile(rb"""<meta[^>]{0,200}?charset\s*=\s*["']?\s*([\w.:-]+)""", re.IGNORECASE)
_XML_ENCODING = re.compile(rb"""^\s*<\?xml[^>]{0,100}encoding\s*=\s*["']([\w.:-]+)""")
_SPACES = re.compile(r"[ \t\n\r\f]+")
_HIDDEN_STYLE = re.compile(r"(?:display\s*:\s*none|visibility\s*:\s*hidden)", re.IGNORECASE)

_DROPPED = frozenset({
    "script", "style", "nav", "template", "noscript", "head", "svg", "iframe", "object", "embed", "canvas",
    "audio", "video", "map", "button", "input", "select", "textarea", "datalist", "menu", "frameset",
    "noframes", "ix:header",
})  # fmt: skip
_DROPPED_ROLES = frozenset({"navigation", "banner", "contentinfo", "search", "menu", "menubar", "toolbar", "alert"})
_BLOCKS = frozenset({
    "address", "article", "aside", "blockquote", "body", "center", "dd", "details", "div", "dl", "dt",
    "fieldset", "figcaption", "figure", "footer", "form", "header", "hgroup", "hr", "html", "legend", "li",
    "main", "ol", "p", "section", "summary", "table", "tbody", "td", "tfoot", "th", "thead", "tr", "ul",
    "caption", "pre", "h1", "h2", "h3", "h4", "h5", "h6", "optgroup", "option", "search",
})  # fmt: skip
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_LISTS = frozenset({"ul", "ol"})
_META = {"description": "description", "author": "author", "keywords": "keywords", "date": "date"}
_MAIN_SHARE = 0.25
_MAX_DEPTH = 5_000
_CONTAINER = re.compile(
    r"<(/?)(?:address|article|aside|blockquote|center|details|dialog|div|dl|fieldset|figure|footer|form|header|hgroup|"
    r"main|menu|nav|ol|section|summary|ul)(?=[\s/>])",
    re.IGNORECASE,
)
_NOT_MARKUP = re.compile(r"<(script|style)\b.*?</\1|<!--.*?-->", re.IGNORECASE | re.DOTALL)


def read_html(path: str, *, options: ReadOptions) -> Iterator[Document]:
    """The one document of an HTML file."""
    source = source_of(path)
    data = load(path, max_bytes=options.max_bytes)
    declared = _XML_ENCODING.search(data[:256]) or _CHARSET.search(data[:4096])
    decoded = decode(
        data, name=source, encoding=options.encoding, declared=declared[1].decode("ascii", "ignore") if declared else ""
    )
    check_length(decoded.text, source, options)
    _check_depth(decoded.text, source)
    tree = LexborHTMLParser(decoded.text)
    assembly = Assembly(source, max_characters=options.max_characters)
    assembly.warnings += decoded.warnings
    root = _main_part(tree)
    first_heading = Walk(assembly).run(root) if root is not None else ""
    title = tree.css_first("head > title")
    html = tree.css_first("html")
    language = (html.attributes.get("lang") or html.attributes.get("xml:lang") or "") if html is not None else ""
    yield assembly.document(
        source,
        title=(one_line(title.text()) if title is not None else "") or first_heading,
        media_type="text/html",
        metadata=_metadata(tree),
        language=re.split(r"[-_]", language.strip().lower())[0],
    )


def add_html(assembly: Assembly, html: str) -> str:
    """Add the blocks of a piece of HTML; returns its first heading, "" where there is none."""
    body = LexborHTMLParser(html).body
    return Walk(assembly).run(body) if body is not None else ""


def _check_depth(html: str, source: str) -> None:
    """Refuse what would take the parser minutes: the rules of HTML look through all open elements at each new one."""
    # Scripts hold markup in strings, with ends that are written `<\/div>`: look again without them before refusing.
    if _is_deep(html) and _is_deep(_NOT_MARKUP.sub("", html)):
        raise CorruptFile(
            f"{source} has elements nested more than {_MAX_DEPTH:,} deep.",
            remedy="Save the page again from a browser, or leave it out.",
        )


def _is_deep(html: str) -> bool:
    depth = 0
    for match in _CONTAINER.finditer(html):
        depth = max(0, depth - 1) if match[1] else depth + 1
        if depth > _MAX_DEPTH:
            return True
    return False


def _metadata(tree: LexborHTMLParser) -> dict[str, MetadataValue]:
    metadata: dict[str, MetadataValue] = {}
    for node in tree.css("head meta[name][content]"):
        name = _META.get((node.attributes.get("name") or "").lower())
        content = one_line(node.attributes.get("content") or "")
        if name and content and len(content) <= 500:
            metadata[name] = content
    return metadata


def _main_part(tree: LexborHTMLParser) -> LexborNode | None:
    """The element to read: the marked main part if it holds a fair share of the text, else the body."""
    body = tree.body
    if body is None:
        return tree.root
    candidates = tree.css("main, [role=main]")
    if len(candidates) == 1:
        main = candidates[0]
        if len(main.text(strip=True)) >= _MAIN_SHARE * _visible_length(body):
            return main
    return body


def _visible_length(body: LexborNode) -> int:
    hidden = sum(len(node.text(strip=True)) for node in body.css("script, style, template, noscript"))
    return len(body.text(strip=True)) - hidden


class Walk:
    """One walk over a tree that adds blocks to an assembly."""

    def __init__(self, assembly: Assembly) -> None:
        self._assembly = assembly
        self._words: list[str] = []
        self._lines: list[str] = []  # of the list that is open
        self._list_depth = 0
        self._numbers: list[int | None] = []  # per open list: the next number, None for bullets
        self._bullet = ""
        self._pre = 0
        self._raised = 0
        self._heading = 0
        self.first_heading = ""

    def run(self, root: LexborNode) -> str:
        """Add everything below `root`; returns the first heading, "" where there is none."""
        stack: list[tuple[LexborNode, bool]] = [(root, False)]
        while stack:
            node, leaving = stack.pop()
            if leaving:
                self._leave(node.tag or "")
                continue
            tag = node.tag or ""
            if tag == "-text":
                self._text(node)
            elif tag.startswith("-") or (node is not root and _is_dropped(node, tag)):
                continue
            elif tag == "table" and not is_layout(node):
                self._flush()
                self._end_list_block()
                caption, lines = table_lines(node)
                if caption:
                    self._assembly.add("paragraph", caption)
                self._assembly.add("table", "\n".join(lines))
            elif tag == "br":
                self._words.append("\n")
            elif tag == "img":
                continue
            else:
                self._enter(node, tag)
                stack.append((node, True))
                children = list(node.iter(include_text=True))
                stack.extend((child, False) for child in reversed(children))
        self._flush()
        self._end_list_block()
        return self.first_heading

    def _text(self, node: LexborNode) -> None:
        text = node.text(deep=False)
        if self._raised:
            text = raised(text)
        self._words.append(text if self._pre else _SPACES.sub(" ", text.replace("\xa0", " ")))

    def _enter(self, node: LexborNode, tag: str) -> None:
        if tag in _BLOCKS:
            self._flush()
        if tag in _HEADINGS:
            self._heading = _HEADINGS[tag]
        elif tag == "pre":
            self._pre += 1
        elif tag == "sup":
            self._raised += 1
        elif tag in _LISTS:
            start = node.attributes.get("start") or "1"
            number = int(start) if start.lstrip("-").isdecimal() and len(start) < 10 else 1
            self._numbers.append(number if tag == "ol" else None)
            self._list_depth += 1
        elif tag == "li":
            number_now = self._numbers[-1] if self._numbers else None
            if number_now is None:
                self._bullet = "- "
            else:
                self._bullet = f"{number_now}. "
                self._numbers[-1] = number_now + 1

    def _leave(self, tag: str) -> None:
        if tag in _BLOCKS:
            self._flush(tag)
        if tag in _HEADINGS:
            self._heading = 0
        elif tag == "pre":
            self._pre -= 1
        elif tag == "sup":
            self._raised -= 1
        elif tag in _LISTS:
            self._numbers.pop()
            self._list_depth -= 1
            self._bullet = ""
            if not self._list_depth:
                self._end_list_block()

    def _flush(self, leaving: str = "") -> None:
        """Close the run of words that is open, as the kind of block that it stands in."""
        text = "".join(self._words)
        self._words.clear()
        if not text.strip():
            return
        if self._pre:
            self._end_list_block()
            self._assembly.add("code", text)
            return
        text = _tidy(text)
        if self._heading:
            self._end_list_block()
            heading = one_line(text)
            self._assembly.add("heading", heading, level=self._heading)
            self.first_heading = self.first_heading or heading
        elif self._list_depth:
            indent = "  " * min(self._list_depth - 1, 8)
            lines = clean(text).split("\n")
            self._lines.append(indent + (self._bullet or "  ") + lines[0])
            self._lines.extend(indent + " " * 2 + line for line in lines[1:])
            self._bullet = ""
        else:
            self._assembly.add("paragraph", text)

    def _end_list_block(self) -> None:
        if self._lines:
            self._assembly.add("list", "\n".join(self._lines))
            self._lines.clear()


def _tidy(text: str) -> str:
    """Collapse white space as a browser does; `<br>` is left as a line end."""
    lines = (_SPACES.sub(" ", line).strip() for line in text.split("\n"))
    return "\n".join(line for line in lines if line)


def _is_dropped(node: LexborNode, tag: str) -> bool:
    if tag in _DROPPED:
        return True
    attributes = node.attributes
    if not attributes:
        return False
    if "hidden" in attributes and attributes["hidden"] != "until-found":
        return True
    if attributes.get("aria-hidden") == "true" or (attributes.get("role") or "").lower() in _DROPPED_ROLES:
        return True
    style = attributes.get("style")
    return bool(style and _HIDDEN_STYLE.search(style))
