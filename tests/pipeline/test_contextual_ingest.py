"""Contexts by a language model from files to search: paid once, kept over kills and failures, said where they fail.

The model is a stand-in that speaks the OpenAI protocol over a loopback socket; one test asks a real llama.cpp server.
"""

from __future__ import annotations

import gc
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cognicraft import Workspace
from cognicraft.errors import (
    BudgetSpent,
    Cancelled,
    ModelAuthentication,
    ModelNotFound,
    ModelUnavailable,
    UsageError,
)
from cognicraft.ingest.context_estimate import ContextEstimate
from cognicraft.ingestion import Progress
from provider_servers import ProviderServer, Reply, Request, provider_server

MODEL = "compatible:placer"
SAID = "This passage stands in the yearly survey of northern towns. It is part {} of the zymurgy file."
TOPICS = ("harbour", "glacier", "orchard", "foundry", "library", "viaduct")


@pytest.fixture
def server() -> Iterator[ProviderServer]:
    with provider_server("openai") as running:
        running.respond = placing
        yield running
    # Models stay open in a process; here each test has a server of its own.
    from cognicraft.models.llm import ProviderModel

    for model in [found for found in gc.get_objects() if type(found) is ProviderModel]:
        model.close()


def placing(request: Request) -> Reply:
    """Names the document and the passage's own topic in other words, as a model would."""
    number = re.search(r"Part (\d+)", passage_of(request))
    part = number[1] if number else "?"
    return Reply(text=SAID.format(part))


def passage_of(request: Request) -> str:
    return request.messages[-1][1].split("the passage begins\n")[1].split("\n===")[0]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "towns"
    made.mkdir()
    for topic in TOPICS:
        write(made / f"{topic}.md", topic, parts=3)
    return made


def write(file: Path, topic: str, *, parts: int) -> None:
    paragraphs = (
        f"## Part {number}\n\nPart {number} of the {topic} report. "
        + f"The {topic} was measured again in spring. " * 14
        for number in range(parts)
    )
    file.write_text(f"# The {topic}\n\n" + "\n\n".join(paragraphs) + "\n", encoding="utf-8")


def settings(server: ProviderServer | None, **more: object) -> dict[str, object]:
    return {
        "ingest.context_dense": "llm",
        "ingest.context_lexical": "llm",
        "ingest.workers": 1,
        "model.context": MODEL,
        "model.base_url": server.base_url if server else "http://127.0.0.1:9/v1",
        "model.api_key": "test-key",
        "model.retries": 0,
        **{key.replace("__", "."): value for key, value in more.items()},
    }


Opener = Callable[..., Workspace]


@pytest.fixture
def opened(home: Path, server: ProviderServer) -> Iterator[Opener]:
    """Opens workspaces and closes them at the end of the test."""
    made: list[Workspace] = []

    def workspace(name: str = "towns", **more: object) -> Workspace:
        if made:
            made[-1].close()
        made.append(Workspace(name, settings=settings(server, **more)))
        return made[-1]

    yield workspace
    for one in made:
        one.close()


def contexts_of(workspace: Workspace) -> list[tuple[str, str]]:
    """(dense, lexical) context of every chunk."""
    engine = workspace.engine
    return [
        (stored.chunk.dense_context, stored.chunk.lexical_context)
        for record in engine.documents()
        for stored in engine.document_chunks(record.id)
    ]


# ── what is asked and what becomes of it ──────────────────────────────────────────────────────────────────────────


def test_every_chunk_is_asked_about_once_and_found_by_what_the_model_said(
    opened: Opener, server: ProviderServer, folder: Path
) -> None:
    workspace = opened()
    report = workspace.ingest(folder)
    assert report.chunks >= 18
    assert len(server.requests) == report.chunks
    assert any(f"{report.chunks} asked for, 0 kept from before" in warning for warning in report.warnings)
    for dense, lexical in contexts_of(workspace):
        assert "yearly survey of northern towns" in dense
        assert lexical.startswith(("The ", "harbour", *TOPICS)), "the outline stays in front"
    hits = workspace.search("zymurgy", arms=["lexical"]).hits
    assert hits, "a word that only the contexts hold"
    assert all("zymurgy" not in hit.text for hit in hits), "and no quote of it"


def test_the_request_shows_the_whole_document_then_the_chunk(
    opened: Opener, server: ProviderServer, folder: Path
) -> None:
    workspace = opened()
    workspace.ingest(folder / "glacier.md")
    texts = {chunk.text.strip() for chunk in workspace.chunks_of("glacier.md")}
    assert {passage_of(request).strip() for request in server.requests} == texts
    for request in server.requests:
        roles = [role for role, _ in request.messages]
        assert roles[0] == "system"
        whole = "\n".join(text for _, text in request.messages)
        for number in range(3):
            assert f"Part {number} of the glacier report" in whole
        assert "File: glacier.md" in whole
        assert request.temperature in (0, 0.0)
    shared = {
        request.text.split("the passage begins")[0].split("A passage of this document")[0]
        for request in server.requests
    }
    assert len(shared) == 1, "what comes before the passage is the same for all, so that providers can keep it"


def test_only_one_arm_has_the_sentences_if_so_configured(opened: Opener, server: ProviderServer, folder: Path) -> None:
    workspace = opened(ingest__context_dense="outline")
    workspace.ingest(folder / "glacier.md")
    for dense, lexical in contexts_of(workspace):
        assert "northern towns" not in dense
        assert "northern towns" in lexical
    assert server.requests


def test_without_llm_no_model_is_asked(opened: Opener, server: ProviderServer, folder: Path) -> None:
    opened(ingest__context_dense="outline", ingest__context_lexical="none").ingest(folder)
    assert not server.requests


def test_chunks_go_out_side_by_side_up_to_the_limit(opened: Opener, server: ProviderServer, folder: Path) -> None:
    server.respond = lambda request: Reply(text=placing(request).text, hang_s=0.15)
    opened(model__concurrency=3).ingest(folder)
    assert server.most_running == 3


def test_a_long_beginning_is_sent_once_before_the_rest(opened: Opener, server: ProviderServer, folder: Path) -> None:
    write(folder / "long.md", "tramway", parts=24)
    seen: list[tuple[float, float]] = []
    lock = threading.Lock()

    def respond(request: Request) -> Reply:
        began = time.monotonic()
        time.sleep(0.1)
        with lock:
            seen.append((began, time.monotonic()))
        return placing(request)

    server.respond = respond
    opened(model__concurrency=4).ingest(folder / "long.md")
    seen.sort()
    assert len(seen) > 20
    assert seen[1][0] >= seen[0][1], "the second call begins after the first has come back"
    assert seen[2][0] < seen[1][1], "and the others side by side"


# ── paid once ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_second_run_and_a_second_workspace_cost_nothing(opened: Opener, server: ProviderServer, folder: Path) -> None:
    workspace = opened()
    first = workspace.ingest(folder)
    asked = len(server.requests)
    assert workspace.ingest(folder).unchanged == len(TOPICS)
    other = opened("copy")
    report = other.ingest(folder)
    assert report.chunks == first.chunks
    assert any(f"0 asked for, {first.chunks} kept from before" in warning for warning in report.warnings)
    assert len(server.requests) == asked


def test_a_changed_file_pays_for_its_own_chunks_only(opened: Opener, server: ProviderServer, folder: Path) -> None:
    workspace = opened()
    workspace.ingest(folder)
    asked = len(server.requests)
    write(folder / "glacier.md", "moraine", parts=3)
    report = workspace.ingest(folder)
    assert report.changed == 1
    assert len(server.requests) - asked == report.chunks


def test_it_is_kept_where_the_cache_of_replies_is_off(opened: Opener, server: ProviderServer, folder: Path) -> None:
    opened(model__cache=False).ingest(folder)
    asked = len(server.requests)
    opened("copy", model__cache=False).ingest(folder)
    assert len(server.requests) == asked


def test_another_model_is_another_revision(opened: Opener, server: ProviderServer, folder: Path) -> None:
    opened().ingest(folder)
    asked = len(server.requests)
    server.respond = lambda request: Reply(text="Another model says that the passage is about the uplands.")
    workspace = opened(model__context="compatible:another")
    report = workspace.ingest(folder)
    assert report.changed == len(TOPICS)
    assert len(server.requests) == 2 * asked
    assert all("uplands" in dense for dense, _ in contexts_of(workspace))
    assert workspace.manifest.context_model == "compatible:another"
    assert opened(model__context="compatible:another").ingest(folder).unchanged == len(TOPICS)


def test_unchanged_files_need_no_model(opened: Opener, home: Path, server: ProviderServer, folder: Path) -> None:
    opened().ingest(folder)
    asked = len(server.requests)
    code = (
        "import sys; from cognicraft import Workspace; from pathlib import Path\n"
        f"with Workspace('towns', settings={settings(None)!r}) as workspace:\n"
        f"    assert workspace.ingest({str(folder)!r}).unchanged == {len(TOPICS)}\n"
        "assert 'pydantic_ai' not in sys.modules and 'openai' not in sys.modules"
    )
    opened("closed")
    subprocess.run(
        [sys.executable, "-c", code], check=True, env={**os.environ, "COGNICRAFT_HOME": str(home)}, timeout=120
    )
    assert len(server.requests) == asked


# ── failures ──────────────────────────────────────────────────────────────────────────────────────────────────────


def stopping_after(count: int, failure: Reply) -> Callable[[Request], Reply]:
    lock = threading.Lock()
    answered = 0

    def respond(request: Request) -> Reply:
        nonlocal answered
        with lock:
            answered += 1
            return placing(request) if answered <= count else failure

    return respond


@pytest.mark.parametrize(
    ("failure", "error"),
    [
        (Reply(status=500, message="down"), ModelUnavailable),
        (Reply(status=429), ModelUnavailable),
        (Reply(status=401), ModelAuthentication),
        (Reply(status=404), ModelNotFound),
        (Reply(break_after=3), ModelUnavailable),
    ],
)
def test_a_model_that_fails_stops_the_run_and_the_next_one_goes_on(
    opened: Opener, server: ProviderServer, folder: Path, failure: Reply, error: type[Exception]
) -> None:
    workspace = opened()
    server.respond = stopping_after(8, failure)
    with pytest.raises(error):
        workspace.ingest(folder)
    done = workspace.documents()
    assert 1 <= len(done) < len(TOPICS), "what was whole is written"
    assert all("northern towns" in dense for dense, _ in contexts_of(workspace)), "nothing without its context"
    server.requests.clear()
    server.respond = placing
    report = workspace.ingest(folder)
    assert report.unchanged == len(done)
    assert len(workspace.documents()) == len(TOPICS)
    assert len(server.requests) == sum(info.chunks for info in workspace.documents()) - 8, "eight were paid before"


def test_a_budget_that_is_spent_stops_the_run(opened: Opener, server: ProviderServer, folder: Path) -> None:
    workspace = opened(model__budget_tokens=3000)
    with pytest.raises(BudgetSpent):
        workspace.ingest(folder)
    first = len(server.requests)
    assert 1 <= first < 18
    with pytest.raises(BudgetSpent):
        workspace.ingest(folder)
    workspace = opened()
    workspace.ingest(folder)
    assert len(server.requests) == sum(info.chunks for info in workspace.documents())


def test_a_workspace_that_nothing_came_into_is_not_left_behind(
    opened: Opener, server: ProviderServer, folder: Path
) -> None:
    server.key = "another"
    with pytest.raises(ModelAuthentication):
        opened().ingest(folder)
    assert opened(ingest__context_dense="outline", ingest__context_lexical="outline").ingest(folder).added == len(
        TOPICS
    )


def test_a_failure_in_a_file_of_many_documents_leaves_it_unsealed(
    opened: Opener, server: ProviderServer, tmp_path: Path
) -> None:
    lines = (
        f'{{"title": "Town {number}", "body": "Part {number} tells of the town {number} at length."}}\n'
        for number in range(30)
    )
    file = tmp_path / "towns.jsonl"
    file.write_text("".join(lines), encoding="utf-8")
    workspace = opened()
    server.respond = stopping_after(10, Reply(status=500))
    with pytest.raises(ModelUnavailable):
        workspace.ingest(file)
    assert len(workspace.documents()) <= 10
    server.respond = placing
    report = workspace.ingest(file)
    assert report.unchanged == 0
    assert len(workspace.documents()) == 30
    assert len(server.requests) >= 30


@pytest.mark.parametrize("useless", [Reply(text=""), Reply(text="OK"), Reply(text="I'm sorry, I cannot do that.")])
def test_a_reply_of_no_use_falls_back_to_the_outline_and_is_said(
    opened: Opener, server: ProviderServer, folder: Path, useless: Reply
) -> None:
    server.respond = lambda request: useless if "Part 1" in passage_of(request) else placing(request)
    workspace = opened()
    report = workspace.ingest(folder)
    bare = [lexical for _, lexical in contexts_of(workspace) if "northern towns" not in lexical]
    assert len(bare) >= len(TOPICS)
    assert all(bare), "the outline is there"
    assert any(
        f"{len(bare)} chunks have no context by {MODEL} but the outline" in warning for warning in report.warnings
    )
    said = [info for info in workspace.documents() if any("no context by" in warning for warning in info.warnings)]
    assert len(said) == len(TOPICS)


def test_a_refusal_falls_back_for_that_chunk(opened: Opener, server: ProviderServer, folder: Path) -> None:
    server.respond = lambda request: (
        Reply(finish="content_filter") if "Part 2" in passage_of(request) else placing(request)
    )
    report = opened().ingest(folder / "glacier.md")
    assert any("1 chunk has no context" in warning and "refused" in warning for warning in report.warnings)


def test_a_prompt_that_is_too_long_after_all_is_cut_further(
    opened: Opener, server: ProviderServer, folder: Path
) -> None:
    write(folder / "long.md", "tramway", parts=40)
    server.respond = lambda request: Reply(overflow=True) if len(request.text) > 9000 else placing(request)
    workspace = opened(model__context_tokens=8000)
    workspace.ingest(folder / "long.md")
    refused = sum(len(request.text) > 9000 for request in server.requests)
    assert 1 <= refused <= 8, "what was learnt is kept for the next calls"
    assert all("northern towns" in lexical for _, lexical in contexts_of(workspace))
    server.requests.clear()
    opened("copy", model__context_tokens=8000).ingest(folder / "long.md")
    assert all(len(request.text) > 9000 for request in server.requests), "nothing that was answered is asked again"


def test_a_document_longer_than_the_window_is_cut_around_the_chunk_and_says_so(
    opened: Opener, server: ProviderServer, folder: Path
) -> None:
    write(folder / "long.md", "tramway", parts=60)
    workspace = opened(model__context_tokens=3000)
    report = workspace.ingest(folder / "long.md")
    assert any("longer than" in warning for warning in report.warnings)
    (info,) = workspace.documents()
    assert any("its beginning and the part around the chunk" in warning for warning in info.warnings)
    for request in server.requests:
        assert len(request.text) < 12_000
        assert "# The tramway" in request.text or "The tramway" in request.text
        assert request.text.count(passage_of(request)[:60]) >= 2, "the passage is in the part that is shown"
        # Half of what stands before the passage is the same for every chunk.
        assert "[… left out …]" in request.text or "Part 1 of" in request.text


# ── asking first, stopping, being killed ──────────────────────────────────────────────────────────────────────────


def test_what_it_will_take_is_asked_first_and_no_means_no(opened: Opener, server: ProviderServer, folder: Path) -> None:
    asked: list[ContextEstimate] = []

    def no(estimate: ContextEstimate) -> bool:
        asked.append(estimate)
        return False

    with pytest.raises(Cancelled):
        opened().ingest(folder, confirm=no)
    assert not server.requests
    (estimate,) = asked
    assert not estimate.sampled
    assert opened().exists() is False

    progress: list[Progress] = []
    workspace = opened()
    report = workspace.ingest(folder, confirm=lambda _: True, progress=progress.append)
    assert estimate.chunks == report.chunks == len(server.requests)
    counted = sum(len(request.text) // 4 for request in server.requests)
    assert counted / 2 < estimate.input_tokens < counted * 2
    assert progress[-1].contexts == progress[-1].contexts_expected == report.chunks
    assert progress[-1].usage.input_tokens > 0
    assert len({now.contexts for now in progress}) > 10, "told as they arrive"


def test_nobody_is_asked_where_nothing_is_to_be_paid(opened: Opener, server: ProviderServer, folder: Path) -> None:
    opened().ingest(folder)

    def never(_: ContextEstimate) -> bool:
        raise AssertionError("asked")

    opened().ingest(folder, confirm=never)
    opened("copy").ingest(folder, confirm=never)


def test_many_files_are_estimated_from_some(opened: Opener, server: ProviderServer, tmp_path: Path) -> None:
    folder = tmp_path / "many"
    folder.mkdir()
    for number in range(40):
        write(folder / f"{number:02}.md", f"town{number}", parts=1 + number % 5)
    asked: list[ContextEstimate] = []
    report = opened().ingest(folder, confirm=lambda estimate: not asked.append(estimate))
    (estimate,) = asked
    assert estimate.files_read == 12
    assert 0.7 * report.chunks < estimate.chunks < 1.4 * report.chunks


def test_documents_in_memory_are_estimated_too(opened: Opener, server: ProviderServer) -> None:
    from cognicraft.records import Document

    documents = [Document(source=f"memo/{n}", text=f"Part {n} of the memo tells of town {n}.") for n in range(4)]
    asked: list[ContextEstimate] = []
    report = opened().ingest_documents(iter(documents), confirm=lambda estimate: not asked.append(estimate))
    assert [estimate.chunks for estimate in asked] == [report.chunks] == [4]


def test_ctrl_c_keeps_what_is_paid(opened: Opener, server: ProviderServer, folder: Path) -> None:
    workspace = opened()
    with pytest.raises(Cancelled):
        workspace.ingest(folder, cancelled=lambda: len(server.requests) >= 7)
    paid = len(server.requests)
    assert 7 <= paid <= 12
    report = workspace.ingest(folder)
    assert len(workspace.documents()) == len(TOPICS)
    assert len(server.requests) == sum(info.chunks for info in workspace.documents())
    assert report.failed == []


def command(home: Path, server: ProviderServer, *arguments: str) -> dict[str, Any]:
    environment = {
        **os.environ,
        "COGNICRAFT_HOME": str(home),
        "COGNICRAFT_MODEL_BASE_URL": server.base_url,
        "COGNICRAFT_MODEL_API_KEY": "test-key",
        "COGNICRAFT_MODEL_RETRIES": "0",
        "COGNICRAFT_INGEST_WORKERS": "1",
    }
    return {
        "args": [sys.executable, "-m", "cognicraft", "ingest", *arguments, "--context-model", MODEL],
        "env": environment,
        "stdin": subprocess.DEVNULL,
        "stdout": subprocess.PIPE,
        "stderr": subprocess.PIPE,
        "text": True,
    }


def test_the_command_asks_first_stops_with_a_sentence_and_goes_on(
    home: Path, server: ProviderServer, folder: Path
) -> None:
    asked = [str(folder), "--context", "llm"]
    refused = subprocess.run(**command(home, server, *asked), timeout=120, check=False)
    assert refused.returncode == 2
    assert "--yes" in refused.stderr
    assert f"Contexts by {MODEL}:" in refused.stderr
    assert not server.requests

    server.respond = stopping_after(8, Reply(status=500))
    stopped = subprocess.run(**command(home, server, *asked, "--yes"), timeout=120, check=False)
    assert stopped.returncode == 9
    assert MODEL in stopped.stderr
    assert "goes on from there" in stopped.stderr
    assert "Traceback" not in stopped.stderr

    server.respond = placing
    server.requests.clear()
    done = subprocess.run(**command(home, server, str(folder), "--yes"), timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    with Workspace("default") as workspace:
        assert len(server.requests) == sum(info.chunks for info in workspace.documents()) - 8


def test_a_killed_run_pays_again_for_the_calls_under_way_only(
    opened: Opener, home: Path, server: ProviderServer, folder: Path
) -> None:
    held = threading.Event()
    server.respond = lambda request: Reply(text=placing(request).text, hang_s=0.2)
    with subprocess.Popen(**command(home, server, str(folder), "--context", "llm", "--yes")) as child:
        while len(server.requests) < 10 and child.poll() is None:
            held.wait(0.01)
        child.send_signal(signal.SIGKILL)
        child.wait(30)
        child.communicate()
    assert len(server.requests) >= 10
    server.respond = placing
    workspace = opened()
    workspace.ingest(folder)
    chunks = sum(info.chunks for info in workspace.documents())
    again = len(server.requests) - chunks
    assert 0 <= again <= 4, "at most as many as were under way at the kill"


def test_without_a_model_nothing_is_written_without_its_context(home: Path, folder: Path) -> None:
    with (
        Workspace("towns", settings={**settings(None), "model.context": "none"}) as workspace,
        pytest.raises(UsageError, match="language model"),
    ):
        workspace.ingest(folder)


# ── a real model ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
def test_a_real_model_server_writes_contexts(home: Path, llama_server: Any, folder: Path) -> None:
    file = folder / "pier.md"
    file.write_text("# The pier\n\nIt was built in 1902.\n\n# The ferry\n\nIt sails twice a day.\n", encoding="utf-8")
    own = {
        **settings(None),
        "ingest.chunk_tokens": 16,
        "model.context": f"compatible:{llama_server.model}",
        "model.base_url": llama_server.openai_url,
        "model.context_tokens": 2048,
    }
    with Workspace("towns", settings=own) as workspace:
        report = workspace.ingest(file)
        assert report.failed == []
        assert len(contexts_of(workspace)) == report.chunks >= 2
        assert any(f"{report.chunks} asked for" in warning for warning in report.warnings)
        assert any(len(lexical) > 60 for _, lexical in contexts_of(workspace)), "what it said stands before a chunk"
