"""A conversation over a workspace, in Python and as a command: real processes, files, a model over its protocol."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cognicraft import Workspace, results
from cognicraft.errors import NotFound, SettingsError, UsageError
from cognicraft.results import AnswerEvent, StepEvent, TokenEvent
from provider_servers import ProviderServer, Reply, Request, provider_server

CORPUS = Path(__file__).resolve().parents[1] / "corpus" / "mountain"
FIRST = "Who led the first ascent of the Matterhorn?"
ALONE = "How high is the Matterhorn?"
WRITTEN = "The Matterhorn is 4,478 m high [1]."


@pytest.fixture(scope="module")
def ingested(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with one workspace; each test gets a copy."""
    home = tmp_path_factory.mktemp("home")
    with Workspace("alps", home=home) as workspace:
        workspace.ingest(CORPUS)
    return home


@pytest.fixture
def home(ingested: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = shutil.copytree(ingested, tmp_path / "home")
    monkeypatch.setenv("COGNICRAFT_HOME", str(folder))
    monkeypatch.setenv("COGNICRAFT_MODEL_ANSWER", "none")
    monkeypatch.chdir(tmp_path)
    return folder


@pytest.fixture
def server() -> Iterator[ProviderServer]:
    with provider_server("openai") as server:
        yield server


def with_model(server: ProviderServer) -> dict[str, object]:
    return {
        "model.answer": "compatible:test",
        "model.base_url": server.base_url,
        "model.api_key": server.key,
        "model.retries": 0,
        "model.cache": False,
    }


def answering(answer: Reply | None = None) -> Callable[[Request], Reply]:
    """Rewrites every follow-up to ALONE, and answers with WRITTEN."""

    def respond(request: Request) -> Reply:
        if request.schema is not None:
            return Reply(text=json.dumps({"follow_up": True, "question": ALONE}))
        return answer or Reply(text=WRITTEN)

    return respond


# ── in Python ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_follow_up_without_a_model_takes_the_terms_of_the_last_question_and_says_so(home: Path) -> None:
    with Workspace("alps") as workspace:
        chat = workspace.chat()
        assert "Whymper" in chat.ask(FIRST).answer
        answer = chat.ask("How high is it?")
        assert "4,478" in answer.answer
        assert answer.question == "How high is it?"
        assert answer.understood.query == "How high is Matterhorn?"
        assert any("terms of the last question" in warning for warning in answer.warnings)
        assert "rewrite" in answer.timings_ms
        assert [turn.stand_alone for turn in chat.turns] == [FIRST, "How high is Matterhorn?"]


def test_a_session_is_gone_on_with_by_its_id_its_beginning_or_as_the_last(home: Path) -> None:
    with Workspace("alps") as workspace:
        chat = workspace.chat()
        first = chat.ask(FIRST)
    for name in (chat.id, chat.id[:-2], "last"):
        with Workspace("alps") as workspace:
            again = workspace.chat(name)
            assert again.id == chat.id
            assert again.turns[0].answer == first
    with Workspace("alps") as workspace:
        assert "4,478" in workspace.chat("last").ask("How high is it?").answer
        assert [info.turns for info in workspace.sessions.list()] == [2]
        assert workspace.chat().id != chat.id
        with pytest.raises(NotFound, match="1999"):
            workspace.chat("1999")


def test_what_cannot_be_meant_is_refused_at_once(home: Path) -> None:
    with Workspace("alps") as workspace:
        with pytest.raises(UsageError):
            workspace.chat().ask_stream("  \n ")
        with pytest.raises(SettingsError):
            workspace.chat(settings={"ingest.splitter": "recursive"})


def test_with_a_model_the_follow_up_is_rewritten_and_the_answer_streams(home: Path, server: ProviderServer) -> None:
    server.respond = answering()
    with Workspace("alps") as workspace:
        chat = workspace.chat(settings=with_model(server))
        chat.ask(FIRST)
        calls = len(server.requests)
        events = list(chat.ask_stream("and how high is it?"))
    assert events[0] == StepEvent(step="rewrite")
    assert "".join(event.text for event in events if isinstance(event, TokenEvent)).startswith("The Matterhorn is")
    assert isinstance(events[-1], AnswerEvent)
    answer = events[-1].answer
    assert "4,478 m high" in answer.answer
    assert answer.understood.query == ALONE
    assert answer.usage.calls == len(server.requests) - calls == 2
    assert not any("last question" in warning for warning in answer.warnings)


def test_an_answer_that_is_stopped_leaves_no_turn_and_stops_the_model(home: Path, server: ProviderServer) -> None:
    server.respond = answering(Reply(text="The Matterhorn is high. " * 200, pace_s=0.05))
    with Workspace("alps") as workspace:
        chat = workspace.chat(settings=with_model(server))
        events = chat.ask_stream(FIRST)
        while not isinstance(next(events), TokenEvent):
            pass
        events.close()  # type: ignore[attr-defined]
        assert chat.turns == []
        give_up = time.monotonic() + 10
        while not server.cancelled and time.monotonic() < give_up:
            time.sleep(0.02)
        assert server.cancelled
        server.respond = answering()
        assert "4,478" in chat.ask(ALONE).answer
        assert len(workspace.chat("last").turns) == 1


# ── as a command ──────────────────────────────────────────────────────────────────────────────────────────────


def chat(*arguments: str, stdin: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "cognicraft", "chat", "-w", "alps", *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def options(server: ProviderServer) -> list[str]:
    return [part for key, value in with_model(server).items() for part in ("--set", f"{key}={value}")]


def test_piped_it_takes_a_question_a_line_and_commands(home: Path) -> None:
    lines = [FIRST, "How high is it?", "", "/sources", "/explain", "/history", "/nonsense", "/new", "/history", "/help"]
    done = chat(stdin="\n".join(lines) + "\n/quit\nnever asked\n")
    assert done.returncode == 0, done.stderr
    parts = done.stdout.split("> ")
    by_line = {part.split("\n", 1)[0]: part.split("\n", 1)[1] for part in parts if "\n" in part}
    assert "Whymper" in by_line[FIRST]
    assert "4,478" in by_line["How high is it?"]
    assert "summits.md" in by_line["/sources"]
    assert "4,478" in by_line["/sources"], "with the text of the source"
    for word in ("searched as: How high is Matterhorn?", "dense", "lexical", "late-interaction", "milliseconds"):
        assert word in by_line["/explain"], word
    assert "Nothing was asked" in parts[-3], "a new session"
    assert "taken as: How high is Matterhorn?" in done.stdout
    assert "/sources" in parts[-2]
    assert "There is no command /nonsense" in done.stderr
    assert "terms of the last question" in done.stderr
    assert "never asked" not in done.stdout
    assert "Traceback" not in done.stderr


def test_a_session_is_listed_resumed_and_deleted(home: Path) -> None:
    assert chat(stdin=f"{FIRST}\n").returncode == 0
    listed = json.loads(chat("--list", "--json", stdin="").stdout)
    assert [(one["turns"], one["first_question"]) for one in listed] == [(1, FIRST)]
    done = chat("--last", "--json", stdin="How high is it?\nAnd the Eiger?\n")
    answers = [results.Answer.model_validate_json(line) for line in done.stdout.splitlines()]
    assert ["4,478" in answers[0].answer, "3,967" in answers[1].answer] == [True, True]
    assert FIRST in chat("--session", listed[0]["id"][:15], stdin="/history\n").stdout
    assert chat("--delete", listed[0]["id"], stdin="").returncode == 0
    assert chat("--list", stdin="").stdout == "There is no session in the workspace alps yet.\n"


def test_what_is_not_there_is_said_with_its_exit_code(home: Path) -> None:
    for arguments, code in ((["--session", "1999"], 3), (["--last"], 3), (["--last", "--session", "x"], 2)):
        done = chat(*arguments, stdin="What is föhn?\n")
        assert done.returncode == code, done.stderr
        assert done.stderr.startswith("error: ")
    done = chat("-w", "nowhere", stdin="What is föhn?\n")
    assert (done.returncode, done.stdout) == (3, "")
    assert not (home / "sessions").exists()


def test_a_question_that_fails_is_said_and_the_next_one_is_answered(home: Path) -> None:
    done = chat("--where", "page >= ", stdin="What is föhn?\nWhat is föhn?\n")
    assert done.returncode == 2
    assert done.stderr.count("error: ") == 2
    done = chat("--set", "model.answer=compatible:test", stdin="What is föhn?\n")
    assert done.returncode in (2, 9), "no address: said, not a traceback"
    assert "Traceback" not in done.stderr


def test_a_model_that_is_gone_is_replaced_by_quotes_and_the_chat_goes_on(home: Path) -> None:
    with provider_server("openai") as server:
        given = options(server)
    done = chat(*given, stdin=f"{FIRST}\nHow high is it?\n")
    assert done.returncode == 0, done.stderr
    assert "Whymper" in done.stdout
    assert "4,478" in done.stdout
    assert "Quoted instead of written" in done.stderr
    assert "No model put the question so that it stands alone" in done.stderr
    assert "Traceback" not in done.stderr


class Talk:
    """A chat process that stays, spoken to a line at a time."""

    def __init__(self, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "cognicraft", "chat", "-w", "alps", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        assert self.process.stdout is not None
        self.output = ""
        os.set_blocking(self.process.stdout.fileno(), False)

    def say(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n".encode())
        self.process.stdin.flush()

    def wait_for(self, text: str, *, count: int = 1) -> None:
        assert self.process.stdout is not None
        give_up = time.monotonic() + 60
        while self.output.count(text) < count:
            assert time.monotonic() < give_up, self.output
            assert self.process.poll() is None, self.output
            self.output += (self.process.stdout.read() or b"").decode()
            time.sleep(0.02)

    def __enter__(self) -> Talk:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                stream.close()

    def end(self) -> int:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        code = self.process.wait(timeout=60)
        self.output += (self.process.stdout.read() or b"").decode()
        self.process.stdout.close()
        return code


posix = pytest.mark.skipif(os.name != "posix", reason="signals and terminals as on POSIX")


@posix
def test_ctrl_c_stops_the_answer_and_keeps_the_session(home: Path, server: ProviderServer) -> None:
    server.respond = answering(Reply(text="The Matterhorn is high. " * 500, pace_s=0.05))
    with Talk("--stream", *options(server)) as talk:
        talk.say(FIRST)
        talk.wait_for("The Matterhorn is high", count=2)
        talk.process.send_signal(signal.SIGINT)
        talk.wait_for("Stopped. The session is kept")
        server.respond = answering()
        talk.say(ALONE)
        talk.wait_for("4,478 m high")
        assert talk.end() == 130, "piped, the first failure is the exit code"
        assert "Traceback" not in talk.output
        assert server.cancelled
    with Workspace("alps") as workspace:
        assert [turn.question for turn in workspace.chat("last").turns] == [ALONE]


@posix
def test_a_kill_loses_no_answer_that_was_shown_and_between_questions_others_may_work(home: Path) -> None:
    with Talk() as talk:
        talk.say(FIRST)
        talk.wait_for("Whymper")
        talk.say("/history")
        talk.wait_for(f"1. {FIRST}")
        time.sleep(0.2)
        with Workspace("alps", settings={"lock_wait_s": 2}) as workspace:
            assert workspace.documents(), "the chat does not hold the workspace while it waits"
        talk.process.send_signal(signal.SIGKILL)
        talk.end()
    with Workspace("alps") as workspace:
        assert [turn.question for turn in workspace.chat("last").turns] == [FIRST]


@posix
def test_in_a_terminal_ctrl_c_at_the_prompt_stays_and_ctrl_d_leaves(home: Path) -> None:
    import pty

    parent, child = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "cognicraft", "chat", "-w", "alps"],
        stdin=child, stdout=child, stderr=child, start_new_session=True, env={**os.environ, "TERM": "dumb"},
    )  # fmt: skip
    os.close(child)
    os.set_blocking(parent, False)
    shown = ""

    def wait_for(text: str) -> None:
        nonlocal shown
        give_up = time.monotonic() + 60
        while text not in shown:
            assert time.monotonic() < give_up, shown
            try:
                shown += os.read(parent, 65536).decode()
            except BlockingIOError:
                time.sleep(0.02)

    try:
        wait_for("> ")
        process.send_signal(signal.SIGINT)
        wait_for("Ctrl-D or /quit leaves")
        os.write(parent, b"What is f\xc3\xb6hn?\n")
        wait_for("warm and dry")
        wait_for("Sources")
        time.sleep(0.3)
        os.write(parent, b"\x04")
        assert process.wait(timeout=60) == 0
        assert "Traceback" not in shown
    finally:
        process.kill()
        process.wait()
        os.close(parent)
