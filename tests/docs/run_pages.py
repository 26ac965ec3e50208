"""Runs the examples of the documentation, and writes their true output into the pages.

    python tests/docs/run_pages.py            say which pages are not what the product does
    python tests/docs/run_pages.py --write    put the true output, the file map and the index of decisions in

Blocks: ```python runs, and a ```text block right after it is what it prints. In ```console each `$ ` line runs (a
backslash continues it, `# exit 4` at its end is the exit code that is meant, 0 without); the lines below are what it
prints, a line of `...` stands for any lines. Other blocks are not run. A page's blocks share one folder and one Python
namespace. Compared without what differs from run to run: times, decimals, ids, widths of columns.
"""

from __future__ import annotations

import ast
import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
NEEDS_MULTILINGUAL = frozenset({"languages.md", "reindex.md"})
# Where nobody listens: no model server of the person who runs this may answer. Pages show the usual address.
NO_OLLAMA, USUAL_OLLAMA = "http://127.0.0.1:9", "http://127.0.0.1:11434"
_A_PERSONS_OWN = ("_API_KEY", "_BASE_URL", "_ENDPOINT")
_BLOCK = re.compile(r"^```(?P<kind>\w*)[^\n]*\n(?P<body>.*?)^```[ ]*$\n?", re.MULTILINE | re.DOTALL)
_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_EXIT = re.compile(r"\s+# exit (\d+)$")
_COUNTING = re.compile(r"^\d+/\d+ (?:files|documents), .*$")
_PROGRESS = re.compile(rf"{_COUNTING.pattern}|^milliseconds: .*$|^\s*$")
_VARIES = (
    (re.compile(r"\b[0-9a-f]{12,32}\b"), "ID"),
    (re.compile(r"\d{4}-\d\d-\d\dT[\d:.+Z-]+"), "TIME"),
    (re.compile(r"process \d+"), "process N"),
    (re.compile(r"\d+ MB free"), "N MB free"),
    (re.compile(r"-?\d+\.\d+"), "N"),
    (re.compile(r"\s+"), " "),
)
_MAP = re.compile(r"(?<=<!-- file map -->\n).*?(?=<!-- end of file map -->)", re.DOTALL)
_INDEX = re.compile(r"(?<=<!-- index -->\n).*?(?=<!-- end of index -->)", re.DOTALL)


def pages() -> list[Path]:
    """The pages that people write: the README and docs, without what is generated and without decisions."""
    return [README, *sorted((ROOT / "docs").glob("*.md"))]


@dataclass(frozen=True, slots=True)
class Example:
    """One command or one Python block: what the page says it prints, and what it did."""

    page: str
    line: int
    code: str
    said: str | None
    printed: str
    said_exit: int = 0
    exit: int = 0

    @property
    def problem(self) -> str:
        """Why the page is not true here; "" where it is."""
        where = f"{self.page}:{self.line}\n$ {self.code.strip()}\n"
        if self.exit != self.said_exit:
            return f"{where}exit code {self.exit}, not {self.said_exit}:\n{self.printed}"
        if self.said is not None and not _fits(self.said, self.printed):
            return f"{where}--- the page says\n{self.said}--- it prints\n{self.printed}"
        return ""


@dataclass(slots=True)
class Place:
    """A folder like a checkout, with a person's own home beside it."""

    folder: Path
    project: Path = field(init=False)
    user: Path = field(init=False)

    def __post_init__(self) -> None:
        folder = self.folder.resolve()
        self.project, self.user = folder / "project", folder / "user"
        self.project.mkdir(parents=True, exist_ok=True)
        self.user.mkdir(exist_ok=True)
        demo = self.project / "demo"
        if not demo.exists():
            demo.symlink_to(ROOT / "demo", target_is_directory=True)

    @contextlib.contextmanager
    def entered(self) -> Iterator[None]:
        before = Path.cwd()
        from_caller = {
            key: value
            for key, value in os.environ.items()
            if not key.startswith("COGNICRAFT_") and not key.endswith(_A_PERSONS_OWN)
        }
        cache = os.environ.get("COGNICRAFT_CACHE") or str(Path("~/.cache/cognicraft").expanduser())
        environment = {
            **from_caller,
            "HOME": str(self.user),
            "COGNICRAFT_CACHE": cache,
            "OLLAMA_HOST": NO_OLLAMA,
            "COLUMNS": "132",
            "TERM": "xterm",
            "NO_COLOR": "1",
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}",
        }
        os.chdir(self.project)
        try:
            with mock.patch.dict(os.environ, environment, clear=True):
                yield
        finally:
            os.chdir(before)

    def shown(self, text: str) -> str:
        own = {str(self.project): "/path/to/project", str(self.user): "~", f"{NO_OLLAMA}/": f"{USUAL_OLLAMA}/"}
        for here, shown in own.items():
            text = text.replace(here, shown)
        return text


def run_page(page: Path, place: Place) -> tuple[list[Example], str]:
    """The examples of a page in order, and the page with their true output in it."""
    text = page.read_text(encoding="utf-8")
    examples: list[Example] = []
    rewritten: list[str] = []
    namespace: dict[str, object] = {"__name__": "__page__"}
    end = 0
    blocks = list(_BLOCK.finditer(text))
    with place.entered():
        for position, block in enumerate(blocks):
            line = text.count("\n", 0, block.start()) + 2
            if block["kind"] == "console":
                commands = _commands(block["body"], line)
                ran = [_command(page.name, number, *example, place) for number, example in commands]
                examples += ran
                rewritten += [text[end : block.start("body")], *map(_console, ran)]
                end = block.end("body")
            elif block["kind"] == "python":
                after = blocks[position + 1] if position + 1 < len(blocks) else None
                follows = after is not None and not text[block.end() : after.start()].strip()
                says = after if after is not None and follows and after["kind"] == "text" else None
                example = _python(page.name, line, block["body"], says and says["body"], namespace, place)
                examples.append(example)
                if says:
                    rewritten += [text[end : says.start("body")], _elided(example.said or "", example.printed)]
                    end = says.end("body")
    return examples, "".join([*rewritten, text[end:]])


def _commands(body: str, line: int) -> Iterator[tuple[int, tuple[str, int, str]]]:
    """(line, (command, exit code, output that the page shows)) of a console block."""
    for match in re.finditer(r"^\$ (?P<command>(?:.*\\\n)*.*)\n(?P<output>(?:(?!\$ ).*\n)*)", body, re.MULTILINE):
        command = match["command"]
        code = _EXIT.search(command)
        yield (
            line + body.count("\n", 0, match.start()),
            (command, int(code[1]) if code else 0, match["output"]),
        )


def _command(page: str, line: int, command: str, said_exit: int, said: str, place: Place) -> Example:
    bare = _EXIT.sub("", command).replace("\\\n", " ")
    own, rest = _own_part(bare)
    printed, code = _cognicraft(own, terminal=not rest) if own else ("", 0)
    if rest:
        done = subprocess.run(
            ["sh", "-c", rest], input=printed.encode(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
        )
        printed, code = done.stdout.decode("utf-8"), done.returncode
    rows = (_ESCAPE.sub("", row).rstrip() for row in printed.splitlines())
    return Example(page, line, command, said, place.shown("".join(f"{row}\n" for row in rows)), said_exit, code)


def _own_part(command: str) -> tuple[list[str], str]:
    """The arguments of a `cognicraft` at the beginning, and the shell's part: what it is piped into, or the whole."""
    first, _, rest = command.partition(" | ")
    with contextlib.suppress(ValueError):  # a bar inside quotes
        words = shlex.split(first)
        if words[0] == "cognicraft" and not {">", "<", "&&", ";"} & set(words):
            return words[1:], rest
    return [], command


class _Stream(io.StringIO):
    """Standard output and error of one command, in the order in which they were written."""

    def __init__(self, parts: list[str], *, terminal: bool) -> None:
        super().__init__()
        self._parts, self._terminal = parts, terminal

    def isatty(self) -> bool:
        return self._terminal

    def write(self, text: str) -> int:
        if not isinstance(text, str):  # click tries whether a stream takes bytes
            raise TypeError("a text stream")
        self._parts.append(text)
        return len(text)


def _cognicraft(arguments: list[str], *, terminal: bool) -> tuple[str, int]:
    """The command line in this process (its models are loaded once), as a person at a terminal, or a pipe, sees it."""
    from cognicraft.cli.main import run

    parts: list[str] = []
    code: object = 0
    with (
        mock.patch.object(sys, "argv", ["cognicraft", *arguments]),
        mock.patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO())),
        contextlib.redirect_stdout(_Stream(parts, terminal=terminal)),
        contextlib.redirect_stderr(_Stream(parts, terminal=False)),
    ):
        try:
            run()
        except SystemExit as stopped:
            code = stopped.code or 0
    return "".join(parts), code if isinstance(code, int) else 1


def _python(page: str, line: int, code: str, said: str | None, namespace: dict[str, object], place: Place) -> Example:
    printed = io.StringIO()
    compiled = compile("\n" * (line - 1) + code, page, "exec")
    with contextlib.redirect_stdout(printed):
        exec(compiled, namespace)
    return Example(page, line, code, said, place.shown(printed.getvalue()))


def _console(example: Example) -> str:
    return f"$ {example.code}\n{_elided(example.said or '', example.printed)}"


def _elided(said: str, printed: str) -> str:
    """What is printed, with the page's `...` where it stands there; without progress, which is not always there."""
    rows = [row for row in printed.splitlines(keepends=True) if not _COUNTING.match(row)]
    shown = said.splitlines()
    if "..." not in shown:
        return "".join(rows)
    before = shown.index("...")
    after = len(shown) - before - 1
    return "".join([*rows[:before], "...\n", *(rows[-after:] if after else [])])


def _fits(said: str, printed: str) -> bool:
    wanted, rows = _plain(said), _plain(printed)
    if "..." not in wanted:
        return wanted == rows
    before = wanted.index("...")
    after = wanted[before + 1 :]
    return rows[:before] == wanted[:before] and (not after or rows[-len(after) :] == after)


def _plain(text: str) -> list[str]:
    rows = []
    for row in text.splitlines():
        if not _PROGRESS.match(row):
            for pattern, mark in _VARIES:
                row = pattern.sub(mark, row)
            rows.append(row.strip())
    return rows


# ── what is generated into hand-written pages ─────────────────────────────────────────────────────────────────────


def file_map() -> str:
    """Every file of the package with the first line of its docstring, folder by folder."""
    source = ROOT / "src" / "cognicraft"
    lines: list[str] = []
    order = ["", "ingest", "search", "answer", "engines", "models", "evaluate", "cli", "testing"]
    files = sorted(path.relative_to(source) for path in source.rglob("*.py"))
    folders = sorted({str(path.parent) for path in files} - {*order, "."})
    for folder in [*order, *folders]:
        here = [path for path in files if str(path.parent) == (folder or ".")]
        if not here:
            continue
        lines += [f"**src/cognicraft/{folder}{'/' if folder else ''}**", "", "| file | what it is |", "| --- | --- |"]
        for path in here:
            docstring = ast.get_docstring(ast.parse((source / path).read_text(encoding="utf-8"))) or ""
            first = " ".join(docstring.split("\n\n")[0].split()).replace("|", "\\|")
            lines.append(f"| [{path.name}](src/cognicraft/{path.as_posix()}) | {first} |")
        lines.append("")
    return "\n".join(["", *lines])


def decision_index() -> str:
    """Every decision page with its heading."""
    found = sorted((ROOT / "docs" / "decisions").glob("[0-9]*.md"))
    titles = [page.read_text(encoding="utf-8").split("\n", 1)[0].lstrip("# ").strip() for page in found]
    return "\n".join(["", *(f"- [{title}]({page.name})" for page, title in zip(found, titles, strict=True)), "", ""])


GENERATED = (
    (ROOT / "CONTRIBUTING.md", _MAP, file_map),
    (ROOT / "docs" / "decisions" / "README.md", _INDEX, decision_index),
)


def main() -> int:
    write = "--write" in sys.argv[1:]
    wanted = [name for name in sys.argv[1:] if not name.startswith("-")]
    stale = 0
    for page, pattern, make in GENERATED:
        text = page.read_text(encoding="utf-8")
        found = pattern.search(text)
        made = text if found is None else text[: found.start()] + make() + text[found.end() :]
        stale += made != text
        if made != text:
            print(f"{page.relative_to(ROOT)}: {'written' if write else 'not what the code says'}")
            if write:
                page.write_text(made, encoding="utf-8")
    with tempfile.TemporaryDirectory(prefix="cognicraft-docs-") as folder:
        place = Place(Path(folder))
        for page in pages():
            if wanted and page.name not in wanted and page != README:
                continue
            examples, rewritten = run_page(page, place)
            problems = [example.problem for example in examples if example.problem]
            stale += bool(problems)
            print(f"{page.relative_to(ROOT)}: {len(examples)} examples, {len(problems)} not as the page says")
            for problem in problems:
                print(problem)
            if write and problems:
                page.write_text(rewritten, encoding="utf-8")
    return 1 if stale and not write else 0


if __name__ == "__main__":
    sys.exit(main())
