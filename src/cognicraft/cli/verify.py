"""`cognicraft verify`: any text held against any files; and how verdicts are shown."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cognicraft.cli.options import ConfigFile, Home, Json, Model, Set

if TYPE_CHECKING:
    from cognicraft.results import CheckedClaim

MARKS = {
    "SUPPORTED": ("+", "green"),
    "PARTIALLY_SUPPORTED": ("~", "yellow"),
    "UNSUPPORTED": ("-", "red"),
    "CONTRADICTED": ("!", "bold red"),
    "UNVERIFIED": ("?", "magenta"),
}
LEGEND = "+ supported   ~ in part   - not supported   ! contradicted   ? not checked"
_SHOWN = 300


def verify(
    answer: Annotated[Path, typer.Option("--answer", metavar="FILE", help="Text to check; - for standard input.")],
    evidence: Annotated[
        list[str], typer.Option("--evidence", "-e", metavar="FILE", help="File to hold it against. Repeatable.")
    ],
    more: Annotated[list[str] | None, typer.Argument(metavar="[FILE]...", help="Further evidence.")] = None,
    home: Home = None,
    config_file: ConfigFile = None,
    as_json: Json = False,
    model: Model = None,
    changed: Set = None,
) -> None:
    """Hold the statements of a text against files: which are borne out, by which words, and which are not.

    `[1]` in the text cites the first file of the evidence. No model is needed; with `--set answer.judge=model` one is
    asked besides. Exit code 0 whatever the verdicts are: they are in the output.
    """
    from cognicraft.cli.options import parse_settings
    from cognicraft.cli.options import workspace as open_workspace
    from cognicraft.cli.output import print_json, print_warnings

    settings = {**parse_settings(changed), **({"model.answer": model} if model else {})}
    with open_workspace(None, home, config_file) as opened:
        found = opened.verify(_text_of(answer), [*evidence, *(more or [])], settings=settings)
    if as_json:
        print_json(found)
        return
    print_claims(found.claims, confidence=found.confidence)
    print_warnings(found.warnings)


def _text_of(file: Path) -> str:
    from cognicraft.errors import UsageError

    try:
        return sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise UsageError(f"The text {file} cannot be read: {reason}.", remedy="Give a text file in UTF-8.") from None


def print_claims(claims: Sequence[CheckedClaim], *, confidence: float | None) -> None:
    """Each claim with its mark, the place that decided, and why where it is not plainly supported."""
    from rich.text import Text

    from cognicraft.cli.output import console, place

    out = console()
    for claim in claims:
        mark, style = MARKS[claim.verdict]
        out.print(Text.assemble((f"{mark} ", style), " ".join(claim.text.split())[:_SHOWN]))
        if claim.verdict != "SUPPORTED" and claim.reason:
            out.print(Text(f"    {claim.reason}"))
        if claim.file is not None:
            quote = " ".join(claim.quote.split())
            shown = f"{quote[:_SHOWN]}{'...' if len(quote) > _SHOWN else ''}"
            out.print(Text(f'    {place(claim.file, claim.page, None, "")}: "{shown}"', style="dim"))
    if not claims:
        out.print("No statement was found that could be checked.")
        return
    if confidence is not None:
        out.print(f"confidence {confidence:.2f}")
    out.print(Text(LEGEND, style="dim"))
