"""Saved chats as training lines: only what is borne out."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from cognicraft import Workspace
from provider_servers import Reply, provider_server

MOUNTAIN = Path(__file__).resolve().parents[1] / "corpus" / "mountain"


def export(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "cognicraft", "export", "triplets", "--home", str(home), *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_quoted_answers_are_written_and_declined_ones_are_not(home: Path) -> None:
    with Workspace(home=home, settings={"model.answer": "none"}) as workspace:
        workspace.ingest(MOUNTAIN)
        chat = workspace.chat()
        chat.ask("How high is Mont Blanc?")
        chat.ask("Which sauce goes with fried squid at the opera?")
    done = export(home)
    (line,) = [json.loads(text) for text in done.stdout.splitlines()]
    assert [message["role"] for message in line["messages"]] == ["system", "user", "assistant"]
    assert "4,806" in line["messages"][1]["content"]
    assert line["messages"][1]["content"].endswith("Question: How high is Mont Blanc?")
    assert "4,806" in line["messages"][2]["content"]
    assert "1 line of 2 turns" in done.stderr


def test_what_a_model_wrote_must_stand_the_check(home: Path, tmp_path: Path) -> None:
    with provider_server("openai") as server:
        settings = {
            "model.answer": "compatible:writer",
            "model.base_url": server.base_url,
            "model.api_key": server.key,
            "model.cache": False,
            "answer.max_corrections": 0,
        }
        with Workspace(home=home, settings=settings) as workspace:
            workspace.ingest(MOUNTAIN)
            chat = workspace.chat()
            server.respond = lambda _: Reply(text="Mont Blanc is 4,806 metres high [1].")
            chat.ask("How high is Mont Blanc, measured in metres?")
            server.respond = lambda _: Reply(text="Mont Blanc is 5,120 metres high [1].")
            chat.ask("What is the height of Mont Blanc in metres?")
    out = tmp_path / "lines.jsonl"
    assert export(home, "--out", str(out)).returncode == 0
    (line,) = [json.loads(text) for text in out.read_text(encoding="utf-8").splitlines()]
    assert line["messages"][2]["content"].startswith("Mont Blanc is 4,806 metres high.")


def test_a_session_that_is_not_there_is_named(home: Path) -> None:
    with Workspace(home=home) as workspace:
        workspace.ingest(MOUNTAIN)
    done = export(home, "--session", "nowhere")
    assert done.returncode == 3
    assert "nowhere" in done.stderr
