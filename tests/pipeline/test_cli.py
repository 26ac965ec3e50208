"""The command line as a person uses it: real processes, real files, exit codes."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cognicraft import results

CORPUS = Path(__file__).resolve().parents[1] / "corpus" / "mountain"


def cognicraft(*arguments: str, stdin: str | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "cognicraft", *arguments],
        input=stdin,
        stdin=subprocess.DEVNULL if stdin is None else None,
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        check=False,
        timeout=120,
    )


@pytest.fixture(scope="module")
def ingested(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with one workspace, made once for the commands that only read."""
    home = tmp_path_factory.mktemp("home")
    done = cognicraft("ingest", str(CORPUS), "--home", str(home), "-w", "alps")
    assert done.returncode == 0, done.stderr
    assert "4 files read into alps" in done.stdout
    return home


def test_ask_prints_the_answer_with_numbered_sources(ingested: Path) -> None:
    done = cognicraft("ask", "What is föhn?", "--home", str(ingested), "-w", "alps")
    assert done.returncode == 0, done.stderr
    assert "warm and dry wind" in done.stdout
    assert "[1]" in done.stdout
    assert "weather.txt" in done.stdout


def test_a_question_that_is_not_answered_is_no_failure(ingested: Path) -> None:
    done = cognicraft("ask", "Which sauce goes with fried squid?", "--home", str(ingested), "-w", "alps", "--json")
    assert done.returncode == 0
    answer = results.Answer.model_validate_json(done.stdout)
    assert not answer.answered


def test_ask_json_holds_the_promised_fields(ingested: Path) -> None:
    done = cognicraft("ask", "How high is Mont Blanc?", "--home", str(ingested), "-w", "alps", "--json")
    record = json.loads(done.stdout)
    assert list(record) == [
        "question", "answered", "answer", "sentences", "sources", "model",
        "confidence", "probability", "claims", "corrections", "understood", "usage", "warnings", "timings_ms", "config",
    ]  # fmt: skip
    assert set(record["sources"][0]) == {
        "n", "document_id", "file", "page", "page_end", "heading", "quote", "start", "end", "score", "also",
    }  # fmt: skip
    assert set(record["sentences"][0]) == {"text", "start", "end", "citations", "unknown_citations"}


def test_search_json_holds_the_promised_fields(ingested: Path) -> None:
    done = cognicraft("search", "hut", "--home", str(ingested), "-w", "alps", "--json", "-n", "2")
    record = json.loads(done.stdout)
    assert list(record) == ["query", "hits", "understood", "usage", "warnings", "timings_ms"]
    assert len(record["hits"]) == 2
    assert set(record["hits"][0]) == {
        "rank", "chunk_id", "document_id", "file", "page", "heading", "text", "start", "end", "score", "arms",
    }  # fmt: skip
    assert set(record["hits"][0]["arms"]["lexical"]) == {"rank", "score"}


def test_search_explained_shows_every_arm(ingested: Path) -> None:
    done = cognicraft(
        "search", "first ascent", "--home", str(ingested), "-w", "alps",
        "--arm", "dense", "--arm", "lexical", "--fusion", "minmax", "--explain",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    header = done.stdout.splitlines()[0].split("\t")
    assert header[:2] == ["rank", "score"]
    assert {"dense", "lexical", "late-interaction"} <= set(header)
    assert "milliseconds" in done.stdout


def test_boolean_search_finds_what_the_rule_says_and_nothing_else(ingested: Path) -> None:
    done = cognicraft(
        "search", "hut AND NOT Matterhorn", "--arm", "boolean", "--home", str(ingested), "-w", "alps", "--json"
    )
    texts = [hit["text"] for hit in json.loads(done.stdout)["hits"]]
    assert texts
    assert all("hut" in text.lower() and "Matterhorn" not in text for text in texts)


def test_documents_are_listed_shown_and_deleted(ingested: Path, tmp_path: Path) -> None:
    home = shutil.copytree(ingested, tmp_path / "home")
    base = ("--home", str(home), "-w", "alps")
    listed = json.loads(cognicraft("documents", "list", *base, "--json").stdout)
    assert len(listed) == 5
    assert "weather.txt" in cognicraft("documents", "list", *base).stdout
    assert "lee side" in cognicraft("documents", "show", "weather.txt", *base).stdout
    gone = cognicraft("documents", "delete", "weather.txt", *base)
    assert gone.returncode == 0, gone.stderr
    assert len(json.loads(cognicraft("documents", "list", *base, "--json").stdout)) == 4
    assert cognicraft("documents", "show", "weather.txt", *base).returncode == 3


def test_workspaces_are_listed_and_deleted(ingested: Path, tmp_path: Path) -> None:
    home = str(shutil.copytree(ingested, tmp_path / "home"))
    listed = json.loads(cognicraft("workspaces", "list", "--home", home, "--json").stdout)
    assert [(w["name"], w["documents"], w["encoders"]) for w in listed] == [("alps", 5, ["minilm"])]
    assert cognicraft("workspaces", "delete", "alps", "--home", home).returncode == 2, "asks first"
    assert cognicraft("workspaces", "delete", "alps", "--home", home, "--yes").returncode == 0
    assert json.loads(cognicraft("workspaces", "list", "--home", home, "--json").stdout) == []


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["ask", "x", "-w", "nothing"], 3, ["no workspace nothing", "cognicraft ingest"]),
        (["search", "x", "-w", "alps", "--fusion", "best"], 2, ["search.fusion"]),
        (["search", "x", "-w", "alps", "--arm", "colour"], 2, ["colour", "lexical"]),
        (["search", "(x", "-w", "alps", "--arm", "boolean"], 2, ["bracket"]),
        (["search", "x", "-w", "alps", "--weight", "lexical"], 2, ["ARM=NUMBER"]),
        (["search", "x", "-w", "../x"], 2, ["workspace"]),
        (["ingest", "no-such-folder", "-w", "other"], 4, ["no-such-folder"]),
        (["ingest", "-w", "other"], 2, ["Nothing to ingest"]),
        (["ingest", ".", "--encoder", "word2vec", "-w", "other"], 2, ["word2vec"]),
        (["documents", "show", "nothing.pdf", "-w", "alps"], 3, ["nothing.pdf", "documents list"]),
        (["evaluate", "retrieval", "no-such-folder"], 2, ["no-such-folder"]),
        (["serach"], 2, ["serach"]),
    ],
)  # fmt: skip
def test_a_bad_request_is_one_message_with_its_exit_code(
    ingested: Path, tmp_path: Path, arguments: list[str], code: int, words: list[str]
) -> None:
    done = cognicraft(*arguments, COGNICRAFT_HOME=str(ingested))
    assert done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    for word in words:
        assert word in done.stderr, done.stderr


def test_a_list_of_files_comes_on_standard_input(tmp_path: Path) -> None:
    names = f"{CORPUS / 'weather.txt'}\n{CORPUS / 'plants.html'}\n"
    done = cognicraft("ingest", "-", "--home", str(tmp_path), "--json", stdin=names)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["added"] == 2


def test_files_that_cannot_be_read_make_exit_code_4_and_are_listed(tmp_path: Path) -> None:
    folder = shutil.copytree(CORPUS, tmp_path / "files")
    (folder / "bad.pdf").write_bytes(b"%PDF-1.4 cut short")
    done = cognicraft("ingest", str(folder), "--home", str(tmp_path / "home"))
    assert done.returncode == 4
    assert "bad.pdf" in done.stderr
    listed = cognicraft("documents", "list", "--failed", "--home", str(tmp_path / "home"))
    assert "bad.pdf" in listed.stdout
    assert "corrupt" in listed.stdout


def test_ctrl_c_stops_and_the_same_command_goes_on(tmp_path: Path) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    for number in range(2000):
        (folder / f"{number:04}.txt").write_text(f"Note {number} is about subject {number * 7}. " * 10)
    command = [sys.executable, "-m", "cognicraft", "ingest", str(folder), "--home", str(tmp_path / "home")]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    time.sleep(4)
    running.send_signal(signal.SIGINT)
    _, errors = running.communicate(timeout=60)
    assert running.returncode == 130, errors
    assert "Traceback" not in errors
    assert "are done and kept" in errors
    kept = json.loads(cognicraft("documents", "list", "--home", str(tmp_path / "home"), "--json").stdout)
    assert 0 <= len(kept) < 2000


def test_config_shows_each_value_with_its_origin(tmp_path: Path) -> None:
    done = cognicraft("config", "show", "--json", "--home", str(tmp_path), COGNICRAFT_SEARCH_DEPTH="50")
    shown = json.loads(done.stdout)
    assert shown["search.depth"] == {"value": "50", "origin": "COGNICRAFT_SEARCH_DEPTH"}
    assert shown["home"] == {"value": str(tmp_path), "origin": "argument"}
    assert str(tmp_path) in cognicraft("config", "path", "--home", str(tmp_path)).stdout


def test_doctor_finds_everything_in_order(ingested: Path) -> None:
    done = cognicraft("doctor", "--json", "--home", str(ingested))
    assert done.returncode == 0, done.stdout
    names = {check["name"]: check for check in json.loads(done.stdout)["checks"]}
    assert names["encoder minilm"]["ok"]
    assert "5 documents" in names["workspace alps"]["detail"]


def test_completion_is_offered_for_the_shell() -> None:
    done = cognicraft("--show-completion", "bash")
    assert "cognicraft" in done.stdout + done.stderr
