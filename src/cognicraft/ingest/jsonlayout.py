"""Lay a JSON value out as text that reads well, searches well and can be cited field by field.

Takes one value; returns a document. Rules, tried on article exports, glossaries, tickets and figures:

- The title field is the first heading.
- A short value is a line `key: value` with the keys down to it joined by dots, so that the line can stand alone.
- A long text is a paragraph of its own under a heading that is its key; no heading where the key says nothing
  (`text`, `body`, `content`) or the field was asked for by name.
- A list of flat objects is a table, one line per object: `key: value | key: value`.
- Identifiers, addresses and hashes (by key or by look) and long lists of numbers are not text: nobody asks for
  them in words, and they blur a vector. They stay in the metadata, where a filter finds them.
- Metadata are the short scalars outside of lists, their keys joined by dots, and lists of short scalars. What can be
  asked (a date, a category, a price) is in both: a filter needs the one, a question the other.

`Document.pointers` gives for every value in the text where it stands. Cost: linear in the value.
What can go wrong: `EmptyFile` where no field has text; `JsonProblem` where the nesting is too deep.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from cognicraft.ingest.assemble import Assembly
from cognicraft.ingest.clean import clean, one_line
from cognicraft.ingest.jsontree import FieldMatcher, Written, leaves, pointer_step
from cognicraft.ingest.readoptions import ReadOptions
from cognicraft.ingest.text import paragraphs
from cognicraft.records import BlockKind, Document, Metadata, MetadataValue, Scalar

LONG_CHARACTERS = 160
"""A string from this length on, or with a line end in it, is a text and not a value."""
MAX_METADATA_CHARACTERS = 120
MAX_METADATA_FIELDS = 64

TITLES = ("title", "name", "heading", "headline", "subject", "term", "label")
_BODIES = frozenset({
    "text", "body", "content", "contents", "page_content", "pagecontent", "abstract", "passage", "paragraph",
    "paragraphs", "markdown", "article", "full_text", "fulltext", "html", "description", "summary",
})  # fmt: skip
_PLUMBING = re.compile(
    r"^_|(?:^|[_\-.])(?:id|ids|uuid|guid|url|urls|uri|href|link|links|slug|hash|md5|sha1|sha256|checksum|etag|cursor|"
    r"embedding|embeddings|vector|base64|blob|token|signature|thumbnail|avatar|icon)$|(?:[a-z])(?:Id|Ids|Url|Uri|Uuid|Hash)$"
)
_LOOKS_LIKE_PLUMBING = re.compile(
    r"^(?:[a-z][a-z0-9+.\-]*://\S+|data:\S+|[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-\S+|(?=[0-9]*[a-fA-F])[0-9a-fA-F]{24,}|[A-Za-z0-9+/_\-]{64,}={0,2})$"
)
_MAX_NUMBERS = 32

Keys = tuple[str | int, ...]
_Chosen = Callable[[Keys, Any], bool]


class JsonLayout:
    """Makes documents of the values in one file."""

    def __init__(self, source: str, *, options: ReadOptions, media_type: str) -> None:
        self._source = source
        self._media_type = media_type
        self._max_characters = options.max_characters
        self._text = [FieldMatcher(pattern) for pattern in options.json_text]
        self._metadata = [FieldMatcher(pattern) for pattern in options.json_metadata]
        self._title = options.json_title

    def document(self, value: Any, *, pointer: str = "") -> Document:
        """Raises: EmptyFile, FileTooLarge, JsonProblem."""
        every = list(leaves(value))
        title_keys = self._title_keys(value, every)
        title = next((written(leaf) for _, keys, leaf in every if keys == title_keys), "")
        name = f"{self._source}#{pointer}" if pointer else self._source
        page = _Page(Assembly(name, max_characters=self._max_characters), pointer)
        if title:
            page.heading(one_line(title), level=1, pointer=_pointer(pointer, title_keys))
        for chosen in self._passes(title_keys):
            _Layout(page, chosen, labelled=len(self._text) != 1).value(value, (), "", level=2)
            page.flush()
        return page.assembly.document(
            self._source,
            title=title,
            media_type=self._media_type,
            pointer=pointer,
            pointers=tuple(page.pointers),
            metadata=self._metadata_of(every, title_keys),
        )

    def _title_keys(self, value: Any, every: Sequence[tuple[str, Keys, Any]]) -> Keys:
        if self._title:
            matcher = FieldMatcher(self._title)
            return next((keys for _, keys, leaf in every if matcher.matches(keys) and one_line(written(leaf))), ())
        return title_field(value)

    def _passes(self, title_keys: Keys) -> Iterator[_Chosen]:
        """One pass over the value for each chosen field, so that the text has their order; or one over all."""
        if not self._text:
            yield lambda keys, leaf: keys != title_keys and not is_plumbing(keys, leaf)
            return
        for index, matcher in enumerate(self._text):
            earlier = self._text[:index]
            yield _chooser(matcher, earlier, title_keys)

    def _metadata_of(self, every: Sequence[tuple[str, Keys, Any]], title_keys: Keys) -> Metadata:
        metadata: dict[str, MetadataValue] = {}
        for _, keys, leaf in every:
            if keys == title_keys and not self._metadata:
                continue
            if self._metadata:
                if not any(matcher.matches(keys) for matcher in self._metadata):
                    continue
            elif any(isinstance(key, int) for key in keys[:-1]):
                continue
            if not self._metadata and isinstance(leaf, str) and _says_nothing(str(keys[-1]) if keys else ""):
                continue
            scalar = metadata_scalar(leaf)
            names = [one_line(str(key)) for key in keys if not isinstance(key, int)]
            if scalar is None or not names:
                continue
            name = ".".join(names)
            if isinstance(keys[-1], int) or any(isinstance(key, int) for key in keys):
                earlier = metadata.get(name, ())
                metadata[name] = (*(earlier if isinstance(earlier, tuple) else (earlier,)), scalar)
            else:
                metadata[name] = scalar
        if self._metadata:
            return metadata
        few = [field for field in metadata.items() if not isinstance(field[1], tuple) or len(field[1]) <= _MAX_NUMBERS]
        return dict(few[:MAX_METADATA_FIELDS])


class _Page:
    """The text as it grows, with where every value stands in it."""

    def __init__(self, assembly: Assembly, pointer: str) -> None:
        self.assembly = assembly
        self.pointer = pointer
        self.pointers: list[tuple[int, int, str]] = []
        self._lines: list[str] = []
        self._line_pointers: list[tuple[int, int, str]] = []
        self._length = 0
        self._kind: BlockKind = "list"

    def line(self, pieces: Sequence[tuple[str, str, str]], *, kind: BlockKind = "list", separator: str = " | ") -> None:
        """Add one line of (label, value, pointer) to the open block of lines, opening one where there is none."""
        if self._lines and kind != self._kind:
            self.flush()
        self._kind = kind
        if self._lines:
            self._length += 1
        line = ""
        for label, value, pointer in pieces:
            line += separator if line else ""
            line += f"{label}: " if label else ""
            self._line_pointers.append((self._length + len(line), self._length + len(line) + len(value), pointer))
            line += value
        self._lines.append(line)
        self._length += len(line)

    def flush(self) -> None:
        if self._lines:
            start = self.assembly.append("\n".join(self._lines))
            self.assembly.mark(self._kind, start, start + self._length)
            self.pointers.extend((start + a, start + b, pointer) for a, b, pointer in self._line_pointers)
        self._lines, self._line_pointers, self._length = [], [], 0

    def heading(self, text: str, *, level: int, pointer: str = "") -> None:
        self.flush()
        if text:
            start = self.assembly.add("heading", text, level=min(level, 6))
            if pointer:
                self.pointers.append((start, start + len(text), pointer))

    def prose(self, text: str, pointer: str) -> None:
        self.flush()
        text = clean(text).strip()
        start = self.assembly.append(text)
        for block in paragraphs(text, offset=start):
            self.assembly.mark(block.kind, block.start, block.end)
        self.pointers.append((start, start + len(text), pointer))


class _Layout:
    """One pass over a value that puts its chosen fields on the page."""

    def __init__(self, page: _Page, chosen: _Chosen, *, labelled: bool) -> None:
        self._page = page
        self._chosen = chosen
        self._labelled = labelled

    def value(self, value: Any, keys: Keys, label: str, *, level: int) -> None:
        """`label` is what the lines of this value are called, `level` the depth that a heading here would have."""
        if isinstance(value, dict):
            self._object(value, keys, label, level)
        elif isinstance(value, list):
            self._list(value, keys, label, level)
        elif value is not None and self._chosen(keys, value):
            self._scalar(value, keys, label, level)

    def _object(self, value: dict[str, Any], keys: Keys, label: str, level: int) -> None:
        for key, child in value.items():
            name = f"{label}.{one_line(key)}" if label else one_line(key)
            if isinstance(child, dict) and not _is_flat(child):
                self._section(child, (*keys, key), name, level)
            else:
                self.value(child, (*keys, key), name, level=level)

    def _section(self, value: Any, keys: Keys, label: str, level: int) -> None:
        """A nested value under a heading of its own, if it has any text."""
        if self._any(value, keys):
            if self._labelled:
                self._page.heading(label, level=level)
            self.value(value, keys, "", level=level + 1)

    def _list(self, items: list[Any], keys: Keys, label: str, level: int) -> None:
        if all(isinstance(item, dict) and _is_flat(item) for item in items):
            self._table(items, keys, label, level)
        elif not any(isinstance(item, dict | list) for item in items):
            self._scalars(items, keys, label, level)
        elif all(isinstance(item, list) and not any(isinstance(cell, dict | list) for cell in item) for item in items):
            self._grid(items, keys, label, level)
        else:
            if label and self._labelled and self._any(items, keys):
                self._page.heading(label, level=level)
            for index, item in enumerate(items):
                self._element(item, (*keys, index), level + 1)

    def _element(self, item: Any, keys: Keys, level: int) -> None:
        """One element of a list under its own title, where it has one."""
        title = title_field(item)
        chosen = self._chosen
        if title and chosen((*keys, *title), item[title[0]]):
            text = one_line(written(item[title[0]]))
            self._page.heading(text, level=level, pointer=self._pointer((*keys, *title)))
            inner = _Layout(
                self._page, lambda at, leaf: at != (*keys, *title) and chosen(at, leaf), labelled=self._labelled
            )
            inner.value(item, keys, "", level=level + 1)
        else:
            self._page.flush()
            self.value(item, keys, "", level=level)

    def _table(self, items: list[dict[str, Any]], keys: Keys, label: str, level: int) -> None:
        if label and self._labelled and self._any(items, keys):
            self._page.heading(label, level=level)
        self._page.flush()
        for index, item in enumerate(items):
            cells = [
                (one_line(key), one_line(written(leaf)), self._pointer((*keys, index, key)))
                for key, leaf in item.items()
                if leaf is not None and self._chosen((*keys, index, key), leaf)
            ]
            cells = [cell for cell in cells if cell[1]]
            if cells:
                self._page.line(cells, kind="table")
        self._page.flush()

    def _grid(self, rows: list[list[Any]], keys: Keys, label: str, level: int) -> None:
        """Rows of bare values: as they are, one line each."""
        if label and self._labelled and self._any(rows, keys):
            self._page.heading(label, level=level)
        self._page.flush()
        for index, row in enumerate(rows):
            cells = [
                ("", one_line(written(leaf)), self._pointer((*keys, index, column)))
                for column, leaf in enumerate(row)
                if leaf is not None and self._chosen((*keys, index, column), leaf)
            ]
            cells = [cell for cell in cells if cell[1]]
            if cells:
                self._page.line(cells, kind="table")
        self._page.flush()

    def _scalars(self, items: list[Any], keys: Keys, label: str, level: int) -> None:
        chosen = [
            (index, item)
            for index, item in enumerate(items)
            if item is not None and self._chosen((*keys, index), item) and one_line(written(item))
        ]
        numbers = sum(isinstance(item, int | float) and not isinstance(item, bool) for _, item in chosen)
        if not chosen or (numbers > _MAX_NUMBERS and numbers == len(chosen)):
            return
        if any(_is_long(item) for _, item in chosen) or len(chosen) > _MAX_NUMBERS:
            if label and self._labelled and not _says_nothing(label):
                self._page.heading(label, level=level)
            for index, item in chosen:
                self._scalar(item, (*keys, index), "", level)
        else:
            pieces = [
                (
                    label if item is chosen[0] and self._labelled else "",
                    one_line(written(item[1])),
                    self._pointer((*keys, item[0])),
                )
                for item in chosen
            ]
            self._page.line(pieces, separator=", ")

    def _scalar(self, leaf: Any, keys: Keys, label: str, level: int) -> None:
        text = written(leaf)
        if not one_line(text):
            return
        silent = not label or not self._labelled or (isinstance(leaf, str) and _says_nothing(label))
        if not _is_long(leaf):
            if silent and label:  # a short text is a paragraph, not an item of the list before it
                self._page.prose(text, self._pointer(keys))
            else:
                self._page.line([("" if silent else label, one_line(text), self._pointer(keys))])
            return
        if not silent:
            self._page.heading(label, level=level)
        self._page.prose(text, self._pointer(keys))

    def _any(self, value: Any, keys: Keys) -> bool:
        """Whether any field below is on the page."""
        return any(self._chosen((*keys, *below), leaf) and one_line(written(leaf)) for _, below, leaf in leaves(value))

    def _pointer(self, keys: Keys) -> str:
        return _pointer(self._page.pointer, keys)


def title_field(value: Any) -> Keys:
    """The key of the field that names an object, () where none does."""
    if not isinstance(value, dict):
        return ()
    by_name = {key.lower(): key for key in value}
    for name in TITLES:
        text = value[by_name[name]] if name in by_name else None
        if isinstance(text, str) and clean(text).strip() and len(text) <= 300:
            return (by_name[name],)
    return ()


def is_plumbing(keys: Keys, leaf: Any) -> bool:
    """Whether a field serves programs and not readers: an identifier, an address, a hash."""
    name = next((key for key in reversed(keys) if isinstance(key, str)), "")
    return bool(_PLUMBING.search(name)) or (isinstance(leaf, str) and bool(_LOOKS_LIKE_PLUMBING.match(leaf.strip())))


def written(leaf: Any) -> str:
    """A scalar as the file writes it."""
    if isinstance(leaf, bool):
        return "true" if leaf else "false"
    if isinstance(leaf, Written):
        return leaf.literal
    return str(leaf)


def metadata_scalar(leaf: Any) -> Scalar | None:
    """The value a filter compares; None for a long text, a blank one, or a number that no engine can hold."""
    if isinstance(leaf, bool | int):
        return leaf
    if isinstance(leaf, float):
        plain = float(leaf)
        return plain if abs(plain) != float("inf") else None
    text = one_line(str(leaf))
    return text if text and len(text) <= MAX_METADATA_CHARACTERS and "\n" not in str(leaf).strip() else None


def _chooser(matcher: FieldMatcher, earlier: Sequence[FieldMatcher], title_keys: Keys) -> _Chosen:
    return lambda keys, _: (
        keys != title_keys and matcher.matches(keys) and not any(other.matches(keys) for other in earlier)
    )


def _pointer(start: str, keys: Keys) -> str:
    return start + "".join(map(pointer_step, keys))


def _is_long(leaf: Any) -> bool:
    return isinstance(leaf, str) and (len(leaf) >= LONG_CHARACTERS or "\n" in leaf.strip())


def _is_flat(value: dict[str, Any]) -> bool:
    """Whether an object is nothing but short values."""
    return not any(isinstance(child, dict | list) or _is_long(child) for child in value.values())


def _says_nothing(label: str) -> bool:
    return label.rpartition(".")[2].lower() in _BODIES
