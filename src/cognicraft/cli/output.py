"""How records are printed: JSON as one document on standard output, text for people, messages on standard error."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from cognicraft.errors import CogniCraftError

if TYPE_CHECKING:
    from rich.console import Console


def console(*, stderr: bool = False) -> Console:
    from rich.console import Console

    return Console(stderr=stderr, highlight=False, soft_wrap=not sys.stdout.isatty(), emoji=False)


def print_json(value: BaseModel | Sequence[BaseModel] | dict[str, Any]) -> None:
    """UTF-8, two spaces, keys in the order of the record."""
    if isinstance(value, BaseModel):
        tree: Any = value.model_dump(mode="json")
    elif isinstance(value, dict):
        tree = value
    else:
        tree = [item.model_dump(mode="json") for item in value]
    text = json.dumps(tree, ensure_ascii=False, indent=2)
    sys.stdout.write(text.encode("utf-8", "backslashreplace").decode("utf-8") + "\n")


def print_error(error: CogniCraftError) -> None:
    print(f"error: {error.message}", file=sys.stderr)
    if error.remedy:
        print(f"  {error.remedy}", file=sys.stderr)


def print_warnings(warnings: Sequence[str]) -> None:
    for warning in warnings:
        print(f"note: {warning}", file=sys.stderr)


def short_file(file: str) -> str:
    """Relative to where the person stands, if it lies below."""
    try:
        return str(Path(file).relative_to(Path.cwd()))
    except ValueError:
        return file


def place(file: str, page: int | None, page_end: int | None, heading: str) -> str:
    """`filings/a.pdf, page 4, Income statement`, in the words that a person looks it up by."""
    parts = [short_file(file)]
    if page is not None:
        parts.append(f"page {page}" if page_end in (None, page) else f"pages {page}-{page_end}")
    if heading:
        parts.append(heading)
    return ", ".join(parts)


def table(columns: Sequence[str], rows: Sequence[Sequence[str]], *, numeric: Sequence[int] = ()) -> None:
    """A table for people: drawn in a terminal, tab-separated when piped."""
    from rich.table import Table
    from rich.text import Text

    if not sys.stdout.isatty():
        for row in [columns, *rows]:
            print("\t".join(cell.replace("\t", " ").replace("\n", " ") for cell in row))
        return
    drawn = Table(box=None, pad_edge=False, header_style="bold")
    for position, column in enumerate(columns):
        drawn.add_column(column, justify="right" if position in numeric else "left", overflow="fold")
    for row in rows:
        drawn.add_row(*(Text(cell) for cell in row))
    console().print(drawn)


def plural(count: int, noun: str) -> str:
    """`1 file`, `2 files`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
