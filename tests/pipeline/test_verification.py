"""Answers checked claim by claim, corrected, and any text held against any files."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cognicraft import Workspace
from cognicraft.errors import EncryptedFile, ReadError, UsageError
from provider_servers import ProviderServer, Reply, Request, provider_server

MOUNTAIN = Path(__file__).resolve().parents[1] / "corpus" / "mountain"
SUMMITS = MOUNTAIN / "summits.md"
QUESTION = "How high is Mont Blanc?"


@pytest.fixture(scope="module")
def alps(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("home")
    with Workspace("alps", home=home) as workspace:
        workspace.ingest(MOUNTAIN)
    return home


@pytest.fixture
def server() -> Iterator[ProviderServer]:
    with provider_server("openai") as started:
        yield started


@pytest.fixture
def workspace(alps: Path, server: ProviderServer) -> Iterator[Workspace]:
    settings = {
        "model.answer": "compatible:writer",
        "model.base_url": server.base_url,
        "model.api_key": server.key,
        "model.cache": False,
        "model.retries": 0,
    }
    with Workspace("alps", home=alps, settings=settings) as opened:
        yield opened


def says(text: str) -> Reply:
    """A reply in which [N] is left to be the first passage."""
    return Reply(text=text.replace("[N]", "[1]"))


def asked_again(request: Request) -> bool:
    return "A check did not find these statements" in request.body["messages"][0]["content"]


# ── answers ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_what_the_evidence_says_is_supported_by_its_words(workspace: Workspace, server: ProviderServer) -> None:
    server.respond = lambda _: says("Mont Blanc is 4,806 metres high [N].")
    answer = workspace.ask(QUESTION)
    (claim,) = answer.claims
    assert claim.verdict == "SUPPORTED"
    assert answer.answer[claim.start : claim.end] == "Mont Blanc is 4,806 metres high."
    assert "4,806" in claim.quote
    assert claim.file == str(SUMMITS)
    text = workspace.document(str(SUMMITS)).text
    assert text[claim.quote_start : claim.quote_end] == claim.quote
    assert answer.confidence == 1.0
    assert answer.corrections == []
    assert answer.usage.calls == 1


def test_a_wrong_figure_is_found_and_written_again(workspace: Workspace, server: ProviderServer) -> None:
    server.respond = lambda request: says(
        "Mont Blanc is 4,806 metres high [N]." if asked_again(request) else "Mont Blanc is 5,120 metres high [N]."
    )
    answer = workspace.ask(QUESTION)
    assert answer.answer.startswith("Mont Blanc is 4,806 metres high.")
    assert [claim.verdict for claim in answer.claims] == ["SUPPORTED"]
    assert [(one.action, one.kept) for one in answer.corrections] == [("written again", "new")]
    assert answer.usage.calls == 2


def test_the_better_of_two_answers_is_kept(workspace: Workspace, server: ProviderServer) -> None:
    server.respond = lambda request: says(
        "Mont Blanc is 9 metres high [N]. It is made of cheese [N]."
        if asked_again(request)
        else "Mont Blanc is 4,806 metres high [N]. It is 5,120 metres wide [N]."
    )
    answer = workspace.ask(QUESTION, settings={"answer.max_corrections": 1})
    assert "4,806" in answer.answer
    assert "cheese" not in answer.answer
    assert answer.corrections[0].kept == "earlier"


def test_corrections_are_bounded(workspace: Workspace, server: ProviderServer) -> None:
    server.respond = lambda _: says("Mont Blanc is 5,120 metres high [N].")
    answer = workspace.ask(QUESTION)
    assert len([one for one in answer.corrections if one.action != "struck"]) <= 2
    assert len(server.requests) <= 3
    assert answer.claims[0].verdict == "CONTRADICTED"
    assert answer.confidence == 0.0


def test_strict_strikes_what_did_not_stand(workspace: Workspace, server: ProviderServer) -> None:
    server.respond = lambda _: says("Mont Blanc is 4,806 metres high [N]. The summit has a casino [N].")
    answer = workspace.ask(QUESTION, settings={"answer.strict": True, "answer.max_corrections": 0})
    assert "casino" not in answer.answer
    assert "4,806" in answer.answer
    assert all(answer.answer[one.start : one.end] == one.text for one in answer.sentences)


def test_strict_with_nothing_left_says_that_the_documents_do_not_tell(
    workspace: Workspace, server: ProviderServer
) -> None:
    server.respond = lambda _: says("The summit has a casino [N].")
    answer = workspace.ask(QUESTION, settings={"answer.strict": True, "answer.max_corrections": 0})
    assert not answer.answered
    assert answer.sources


def test_without_verification_nothing_is_claimed(workspace: Workspace, server: ProviderServer) -> None:
    server.respond = lambda _: says("The summit has a casino [N].")
    answer = workspace.ask(QUESTION, settings={"answer.verify": False})
    assert (answer.confidence, answer.claims, answer.corrections) == (None, [], [])


def test_a_judge_that_talks_nonsense_leaves_the_verdict_to_the_signals(
    workspace: Workspace, server: ProviderServer
) -> None:
    server.respond = lambda request: (
        Reply(text="perhaps") if request.schema else says("Mont Blanc is 5,120 metres high [N].")
    )
    answer = workspace.ask(QUESTION, settings={"answer.judge": "model", "answer.max_corrections": 0})
    (claim,) = answer.claims
    assert claim.verdict == "CONTRADICTED"


def test_a_judge_cannot_support_by_a_quote_that_does_not_occur(workspace: Workspace, server: ProviderServer) -> None:
    judged = {"judgements": [{"claim": 1, "verdict": "SUPPORTED", "passage": 1, "quote": "It has a casino."}]}
    server.respond = lambda request: (
        Reply(text=json.dumps(judged)) if request.schema else says("The summit has a casino [N].")
    )
    answer = workspace.ask(QUESTION, settings={"answer.judge": "model", "answer.max_corrections": 0})
    assert answer.claims[0].verdict != "SUPPORTED"


# ── any text ──────────────────────────────────────────────────────────────────────────────────────────────────


def verify(*arguments: str, text: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "cognicraft", "verify", *arguments],
        capture_output=True,
        text=True,
        input=text,
        timeout=120,
        check=False,
    )


def test_any_text_is_held_against_any_files(home: Path) -> None:
    with Workspace(home=home) as workspace:
        found = workspace.verify("Mont Blanc is 4,810 metres high. Mont Blanc is 4,806 metres high.", [SUMMITS])
    assert [claim.verdict for claim in found.claims] == ["CONTRADICTED", "SUPPORTED"]
    assert "4,806" in found.claims[0].reason


def test_a_number_in_brackets_cites_the_file_of_that_place(home: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.txt"
    other.write_text("The Matterhorn stands above Zermatt.", encoding="utf-8")
    text = "Mont Blanc is 4,806 metres high [1]."
    with Workspace(home=home) as workspace:
        right = workspace.verify(text, [SUMMITS, other]).claims[0]
        wrong = workspace.verify(text, [other, SUMMITS]).claims[0]
    assert right.verdict == "SUPPORTED"
    assert wrong.verdict != "SUPPORTED"
    assert wrong.n == 2


def test_the_command_marks_each_statement(home: Path) -> None:
    done = verify("--answer", "-", "--evidence", str(SUMMITS), text="Mont Blanc is 4,806 metres high. It has a casino.")
    assert done.returncode == 0
    assert "+ Mont Blanc is 4,806 metres high." in done.stdout
    assert "- It has a casino." in done.stdout


def test_the_json_record_holds_verdicts_and_quotes(home: Path) -> None:
    done = verify("--answer", "-", "-e", str(SUMMITS), "--json", text="Mont Blanc is 4,806 metres high.")
    record = json.loads(done.stdout)
    assert record["claims"][0]["verdict"] == "SUPPORTED"
    assert record["confidence"] == 1.0


def test_an_empty_text_cannot_be_verified(home: Path) -> None:
    with Workspace(home=home) as workspace, pytest.raises(UsageError, match="empty"):
        workspace.verify("  ", [SUMMITS])


def test_evidence_that_cannot_be_read_is_an_error(home: Path, tmp_path: Path) -> None:
    with Workspace(home=home) as workspace, pytest.raises(ReadError) as caught:
        workspace.verify("It is high.", [tmp_path / "nowhere.pdf"])
    assert not isinstance(caught.value, EncryptedFile)


def test_no_workspace_is_made_by_verifying(home: Path) -> None:
    verify("--answer", "-", "-e", str(SUMMITS), "--home", str(home), text="It is high.")
    assert not (home / "workspaces").exists()
