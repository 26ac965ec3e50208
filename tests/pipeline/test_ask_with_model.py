"""Questions answered by a language model: over the provider's protocol on a real socket, in real processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from cognicraft import Workspace, results
from cognicraft.errors import BudgetSpent, ModelAuthentication, ModelNotFound, UsageError
from cognicraft.presenting import NOT_TOLD
from provider_servers import ProviderServer, Reply, Request, provider_server

MOUNTAIN = Path(__file__).resolve().parents[1] / "corpus" / "mountain"
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


def settings(server: ProviderServer, **more: object) -> dict[str, object]:
    own = {
        "model.answer": "compatible:writer",
        "model.base_url": server.base_url,
        "model.api_key": server.key,
        "model.cache": False,
        "model.retries": 0,
        "answer.max_corrections": 0,  # what is checked and corrected has tests of its own
    }
    return {**own, **{key.replace("__", "."): value for key, value in more.items()}}


@pytest.fixture
def workspace(alps: Path, server: ProviderServer) -> Iterator[Workspace]:
    with Workspace("alps", home=alps, settings=settings(server)) as opened:
        yield opened


def number_of(request: Request, words: str) -> int:
    """The number of the passage, in the prompt, that holds these words."""
    prompt = request.body["messages"][-1]["content"]
    before = prompt[: prompt.index(words)]
    return int(before.rsplit("<<passage ", 1)[1].split(" ", 1)[0])


def answers(server: ProviderServer, text: str, words: str = "4,806") -> None:
    """Let the model say `text`, N being the number of the passage that holds `words`."""
    server.respond = lambda request: Reply(text=text.replace("[N]", f"[{number_of(request, words)}]"))


def command(server: ProviderServer, alps: Path, *arguments: str, key: str = "") -> subprocess.CompletedProcess[str]:
    own = {name: value for name, value in os.environ.items() if not name.startswith("COGNICRAFT_MODEL")}
    environment = {
        **own,
        "COGNICRAFT_HOME": str(alps),
        "COGNICRAFT_MODEL_BASE_URL": server.base_url,
        "COGNICRAFT_MODEL_API_KEY": key or server.key,
        "COGNICRAFT_MODEL_CACHE": "false",
        "COGNICRAFT_MODEL_RETRIES": "0",
        "COGNICRAFT_ANSWER_MAX_CORRECTIONS": "0",
    }
    return subprocess.run(
        [sys.executable, "-m", "cognicraft", "ask", QUESTION, "-w", "alps", "--model", "compatible:writer", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        env=environment,
        check=False,
    )


# ── what is written ───────────────────────────────────────────────────────────────────────────────────────────


def test_a_citation_leads_to_file_and_words_of_the_document(workspace: Workspace, server: ProviderServer) -> None:
    answers(server, "It is 4,806 metres high [N].")
    answer = workspace.ask(QUESTION)
    (source,) = answer.sources
    assert answer.answered
    assert answer.model == "compatible:writer"
    assert answer.sentences[0].citations == [source.n]
    assert Path(source.file).name in {path.name for path in MOUNTAIN.iterdir()}
    text = workspace.document(source.document_id).text
    assert text[source.start : source.end] == source.quote
    assert "4,806" in source.quote


def test_a_number_that_no_passage_has_is_kept_and_said(workspace: Workspace, server: ProviderServer) -> None:
    answers(server, "It is high [N]. It is cold [77].")
    answer = workspace.ask(QUESTION)
    assert answer.sentences[1].citations == []
    assert answer.sentences[1].unknown_citations == [77]
    assert any("[77]" in warning for warning in answer.warnings)


def test_a_sentence_without_a_citation_is_kept_and_said(workspace: Workspace, server: ProviderServer) -> None:
    answers(server, "It is high [N]. Everyone knows it.")
    answer = workspace.ask(QUESTION)
    assert [sentence.citations == [] for sentence in answer.sentences] == [False, True]
    assert "1 sentence cites no passage." in answer.warnings


def test_spans_of_sentences_lie_in_the_answer(workspace: Workspace, server: ProviderServer) -> None:
    answers(server, "One thing [N]. Another, 【N】 too. And a third")
    answer = workspace.ask(QUESTION)
    assert all(answer.answer[one.start : one.end] == one.text for one in answer.sentences)


def test_a_model_that_finds_nothing_in_the_passages_says_so(workspace: Workspace, server: ProviderServer) -> None:
    server.respond = lambda _: Reply(text="NOT_IN_DOCUMENTS")
    answer = workspace.ask("Who won the cup in 1950?")
    assert not answer.answered
    assert answer.answer == NOT_TOLD
    assert answer.sources


def test_the_pieces_of_a_stream_are_the_answer(workspace: Workspace, server: ProviderServer) -> None:
    answers(server, "It is 4,806 metres high [N]. That is a lot [N].")
    events = list(workspace.ask_stream(QUESTION))
    pieces = [event.text for event in events if isinstance(event, results.TokenEvent)]
    last = events[-1]
    assert isinstance(last, results.AnswerEvent)
    assert len(pieces) > 1
    assert "".join(pieces) == last.answer.answer


def test_closing_the_stream_hangs_up_on_the_model(workspace: Workspace, server: ProviderServer) -> None:
    server.respond = lambda _: Reply(text="word " * 400, pace_s=0.02)
    events = workspace.ask_stream(QUESTION)
    next(event for event in events if isinstance(event, results.TokenEvent))
    events.close()  # type: ignore[attr-defined]
    deadline = time.monotonic() + 10
    while not server.cancelled and time.monotonic() < deadline:
        time.sleep(0.02)
    assert server.cancelled == 1


def test_evidence_is_no_more_than_the_budget(workspace: Workspace, server: ProviderServer) -> None:
    server.respond = lambda _: Reply(text="Fine [1].")
    small = workspace.ask(QUESTION, settings={"answer.max_tokens": 200})
    large = workspace.ask(QUESTION)
    assert small.config["evidence_tokens"] <= 200 < large.config["evidence_tokens"]
    assert any("limited to 200 tokens" in warning for warning in small.warnings)


def test_evidence_that_the_model_cannot_read_at_once_is_cut(workspace: Workspace, server: ProviderServer) -> None:
    server.queue(Reply(overflow=True))
    server.respond = lambda _: Reply(text="Fine [1].")
    answer = workspace.ask(QUESTION, settings={"answer.max_tokens": 800})
    assert answer.model
    assert any("reads less than was given" in warning for warning in answer.warnings)


def test_persona_style_and_language_reach_the_model(workspace: Workspace, server: ProviderServer) -> None:
    server.respond = lambda _: Reply(text="Gut [1].")
    own = {"answer.persona": "You are a guide.", "answer.style": "In one line.", "answer.language": "German"}
    workspace.ask(QUESTION, settings=own)
    system = server.requests[-1].body["messages"][0]["content"]
    assert "You are a guide." in system
    assert "In one line." in system
    assert "German" in system


def test_a_template_of_ones_own_is_used(workspace: Workspace, server: ProviderServer, tmp_path: Path) -> None:
    file = tmp_path / "mine.md"
    file.write_text("# System\nAlways NOT_IN_DOCUMENTS.\n# User\n{{evidence}}\nQ: {{question}}\n", encoding="utf-8")
    server.respond = lambda _: Reply(text="Fine [1].")
    workspace.ask(QUESTION, settings={"answer.prompt": str(file)})
    assert server.requests[-1].body["messages"][0]["content"] == "Always NOT_IN_DOCUMENTS."


def test_a_template_that_cannot_be_used_costs_nothing(workspace: Workspace, server: ProviderServer) -> None:
    with pytest.raises(UsageError, match="assistent"):
        workspace.ask(QUESTION, settings={"answer.prompt": "assistent"})
    assert server.requests == []


# ── what it took ──────────────────────────────────────────────────────────────────────────────────────────────


def test_tokens_and_times_are_counted(workspace: Workspace, server: ProviderServer) -> None:
    answers(server, "It is high [N].")
    answer = workspace.ask(QUESTION)
    assert answer.usage.calls == 1
    assert answer.usage.input_tokens > 100
    assert answer.usage.output_tokens > 0
    assert answer.usage.cost_usd is None
    assert {"ground", "first token", "write", "total"} <= set(answer.timings_ms)


def test_the_same_question_twice_is_paid_for_once(alps: Path, server: ProviderServer) -> None:
    answers(server, "It is high [N].")
    with Workspace("alps", home=alps, settings={**settings(server), "model.cache": True}) as workspace:
        first, second = workspace.ask(QUESTION), workspace.ask(QUESTION)
    assert len(server.requests) == 1
    assert (second.usage.calls, second.usage.cached_calls) == (0, 1)
    assert second.answer == first.answer


def test_a_spent_budget_stops(workspace: Workspace, server: ProviderServer) -> None:
    with pytest.raises(BudgetSpent):
        workspace.ask(QUESTION, settings={"model.budget_tokens": 0})
    assert server.requests == []


def test_a_price_that_is_not_known_is_refused_under_a_budget(workspace: Workspace, server: ProviderServer) -> None:
    with pytest.raises(BudgetSpent, match="price"):
        workspace.ask(QUESTION, settings={"model.budget_usd": 1.0})
    assert server.requests == []


# ── what goes wrong ───────────────────────────────────────────────────────────────────────────────────────────

FAILURES = {
    "a failure of the provider": Reply(status=500),
    "too many requests": Reply(status=429),
    "half a stream": Reply(text="It is very high indeed [1].", break_after=12),
    "a body that is no JSON": Reply(malformed=True),
    "an empty reply": Reply(text=""),
    "a refusal": Reply(refusal=True),
}


@pytest.mark.parametrize("failure", FAILURES)
def test_what_fails_is_replaced_by_quotes_and_said(workspace: Workspace, server: ProviderServer, failure: str) -> None:
    server.respond = lambda _: FAILURES[failure]
    answer = workspace.ask(QUESTION)
    assert answer.model == ""
    assert "4,806" in answer.answer
    assert answer.warnings[0].startswith("Quoted instead of written: ")


def test_a_wrong_key_is_an_error_that_does_not_show_it(workspace: Workspace, server: ProviderServer) -> None:
    with pytest.raises(ModelAuthentication) as caught:
        workspace.ask(QUESTION, settings={"model.api_key": "sk-secret-of-mine"})
    assert "sk-secret-of-mine" not in str(caught.value)


def test_a_model_that_does_not_exist_is_an_error(workspace: Workspace, server: ProviderServer) -> None:
    server.models = {"another"}
    with pytest.raises(ModelNotFound, match="writer"):
        workspace.ask(QUESTION)


def test_steps_that_want_a_model_say_that_they_went_without(alps: Path) -> None:
    own = {"model.answer": "none", "search.plan": True, "search.rerank": "llm"}
    with Workspace("alps", home=alps, settings=own) as workspace:
        answer = workspace.ask(QUESTION)
    assert "4,806" in answer.answer
    assert any("without a plan" in warning for warning in answer.warnings)
    assert any("Reranking by a language model was left out" in warning for warning in answer.warnings)


# ── plans and reranking ───────────────────────────────────────────────────────────────────────────────────────


def test_a_plan_searches_with_more_than_the_question(workspace: Workspace, server: ProviderServer) -> None:
    plan = {
        "intent": "a height", "complexity": "simple", "strategy": "chunks", "file_hints": [], "answer_style": "",
        "parts": [], "variations": [{"query": "elevation of the highest summit", "entities": [], "file_patterns": []}],
    }  # fmt: skip
    server.respond = lambda request: Reply(text=json.dumps(plan) if request.schema else "High [1].")
    answer = workspace.ask(QUESTION, settings={"search.plan": True})
    assert answer.understood.queries == [QUESTION, "elevation of the highest summit"]
    assert answer.understood.intent == "a height"
    assert answer.usage.calls == 2


def test_grades_of_a_model_decide_the_order(workspace: Workspace, server: ProviderServer) -> None:
    def grade(request: Request) -> Reply:
        count = request.body["messages"][-1]["content"].count('number="')
        grades = [{"passage": number, "grade": 10 if number == count else 0} for number in range(1, count + 1)]
        return Reply(text=json.dumps({"grades": grades}))

    server.respond = grade
    before = workspace.search(QUESTION, limit=5, settings={"search.rerank_candidates": 5})
    after = workspace.search(QUESTION, limit=5, rerank="llm", settings={"search.rerank_candidates": 5})
    assert after.hits[0].chunk_id == before.hits[-1].chunk_id
    assert {hit.chunk_id for hit in after.hits} == {hit.chunk_id for hit in before.hits}
    assert "llm" in after.hits[0].arms
    assert after.usage.calls == 1


# ── the command line ──────────────────────────────────────────────────────────────────────────────────────────


def test_the_command_prints_the_answer_and_its_sources(alps: Path, server: ProviderServer) -> None:
    answers(server, "It is 4,806 metres high [N].")
    done = command(server, alps)
    assert done.returncode == 0
    assert done.stdout.startswith("It is 4,806 metres high. [")
    assert "Sources\n[" in done.stdout


def test_streamed_and_whole_print_the_same(alps: Path, server: ProviderServer) -> None:
    answers(server, "It is 4,806 metres high [N]. So it is [N].")
    assert command(server, alps, "--stream").stdout == command(server, alps, "--no-stream").stdout


def test_what_broke_off_is_followed_by_the_quotes(alps: Path, server: ProviderServer) -> None:
    server.respond = lambda _: Reply(text="It is very, very high up there [1].", break_after=25)
    done = command(server, alps, "--stream")
    assert done.returncode == 0
    assert done.stdout.startswith("It is ")
    assert "4,806" in done.stdout
    assert "note: Quoted instead of written: " in done.stderr


def test_a_wrong_key_ends_with_its_own_exit_code(alps: Path, server: ProviderServer) -> None:
    done = command(server, alps, key="wrong-key")
    assert done.returncode == 9
    assert done.stderr.startswith("error: ")
    assert "wrong-key" not in done.stderr
    assert "Traceback" not in done.stderr


def test_explain_shows_what_was_spent(alps: Path, server: ProviderServer) -> None:
    answers(server, "It is high [N].")
    done = command(server, alps, "--explain")
    assert "model: compatible:writer; 1 calls" in done.stdout
    assert "milliseconds: " in done.stdout
