"""Write docs/reference/ from the code: commands, settings, records, errors.

usage: generate_docs.py [--check]     --check writes nothing and fails where a page is not what the code says
"""

from __future__ import annotations

import inspect
import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

REFERENCE = Path(__file__).resolve().parents[1] / "docs" / "reference"


def commands() -> str:
    """Every command's help, as `--help` prints it, without the width and colours of a terminal."""
    os.environ.update({"NO_COLOR": "1", "COLUMNS": "100", "TERMINAL_WIDTH": "100", "_TYPER_STANDARD_TRACEBACK": "1"})
    from typer.main import get_command

    from cognicraft.cli.main import app

    lines = ["# Commands", "", "Made by `make docs` from the command line itself.", ""]
    for path, command in _walk(get_command(app), ("cognicraft",)):
        lines += [f"## `{' '.join(path)}`", "", _paragraphs(command.help or ""), ""]
        rows = []
        for parameter in command.params:
            names = ", ".join(f"`{name}`" for name in [*parameter.opts, *parameter.secondary_opts])
            if parameter.param_type_name == "argument":
                names = f"`{parameter.metavar or parameter.name}`"
            value = "" if getattr(parameter, "is_flag", False) else (parameter.metavar or "")
            note = " ".join((getattr(parameter, "help", "") or "").split())
            if "--help" in names or "completion" in names:
                continue
            rows.append(f"| {names} | {f'`{value}`' if value and 'argument' not in names else ''} | {note} |")
        if rows:
            lines += ["| option | value | meaning |", "| --- | --- | --- |", *rows, ""]
    return "\n".join(lines)


def _walk(command: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    yield path, command
    for name, inner in getattr(command, "commands", {}).items():
        yield from _walk(inner, (*path, name))


def _paragraphs(text: str) -> str:
    return "\n\n".join(" ".join(part.split()) for part in re.split(r"\n\s*\n", inspect.cleandoc(text)))


def settings() -> str:
    """Every setting with its default, bounds and meaning (the string under the field)."""
    from cognicraft import config

    lines = [
        "# Settings",
        "",
        "Made by `make docs` from `src/cognicraft/config.py`. A value is taken from the first of: an argument, the",
        "environment variable, `cognicraft.toml` (`--config FILE`, `COGNICRAFT_CONFIG`, the current folder, the home),",
        "the default. `cognicraft config show` prints what is in force and where each value comes from.",
        "",
    ]
    for title, section in (
        ("", config.Settings),
        ("ingest", config.IngestSettings),
        ("search", config.SearchSettings),
        ("answer", config.AnswerSettings),
        ("model", config.ModelSettings),
    ):
        lines += [f"## {f'[{title}]' if title else 'Top level'}", "", inspect.getdoc(section) or "", ""]
        lines += ["| key | variable | default | meaning |", "| --- | --- | --- | --- |"]
        notes = _notes(section)
        for name, field in section.model_fields.items():
            if inspect.isclass(field.annotation) and issubclass(field.annotation, config.Section):
                continue
            key = f"{title}.{name}" if title else name
            variable = config.ENVIRONMENT_PREFIX + key.replace(".", "_").upper()
            default = json.dumps(field.get_default(), default=str).replace("|", "\\|")
            lines.append(f"| `{name}` | `{variable}` | `{default}` | {notes[name]} |")
        lines.append("")
    return "\n".join(lines)


def _notes(section: type) -> dict[str, str]:
    found = re.findall(r'^    (\w+):[^\n]*\n    """(.*?)"""', inspect.getsource(section), re.MULTILINE | re.DOTALL)
    return {name: " ".join(note.split()) for name, note in found}


def records() -> str:
    """JSON Schema of what `--json` prints."""
    from cognicraft import results

    lines = [
        "# Records",
        "",
        "Made by `make docs` from `src/cognicraft/results.py`: the JSON Schema of what the commands print with",
        "`--json` and of what Python returns.",
        "",
    ]
    for command, record in (
        ("ask", results.Answer),
        ("search", results.SearchResult),
        ("ingest", results.IngestReport),
        ("documents list", results.DocumentInfo),
        ("documents show", results.DocumentText),
        ("workspaces list", results.WorkspaceInfo),
        ("doctor", results.DoctorReport),
        ("evaluate retrieval", results.RetrievalEvaluation),
    ):
        schema = json.dumps(record.model_json_schema(), indent=2, ensure_ascii=False)
        lines += [f"## `{record.__name__}` (`cognicraft {command}`)", "", "```json", schema, "```", ""]
    return "\n".join(lines)


def errors() -> str:
    """The error tree with exit codes and HTTP status."""
    from cognicraft import errors as module

    lines = [
        "# Errors",
        "",
        "Made by `make docs` from `src/cognicraft/errors.py`. Every error names the thing, the reason and the remedy.",
        "",
        "| error | code | exit | HTTP | meaning |",
        "| --- | --- | --- | --- | --- |",
    ]
    for name, kind in vars(module).items():
        if inspect.isclass(kind) and issubclass(kind, module.CogniCraftError):
            meaning = (inspect.getdoc(kind) or "").split("\n")[0]
            lines.append(f"| `{name}` | `{kind.code}` | {kind.exit_code} | {kind.http_status} | {meaning} |")
    return "\n".join([*lines, ""])


PAGES = {"commands.md": commands, "settings.md": settings, "records.md": records, "errors.md": errors}


def main() -> int:
    check = "--check" in sys.argv[1:]
    stale = []
    REFERENCE.mkdir(parents=True, exist_ok=True)
    for name, make in PAGES.items():
        page = REFERENCE / name
        text = make().rstrip("\n") + "\n"
        if check:
            if not page.is_file() or page.read_text(encoding="utf-8") != text:
                stale.append(name)
        else:
            page.write_text(text, encoding="utf-8")
    if stale:
        print(f"docs/reference is not what the code says: {', '.join(stale)}. Run: make docs", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
