"""`cognicraft chat`: a conversation over a workspace, kept and resumable; piped, one question a line."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from cognicraft.cli.options import ConfigFile, Home, Json, Model, Plan, Set, Where, WorkspaceName

if TYPE_CHECKING:
    from cognicraft.chat import Chat
    from cognicraft.results import Answer, AskEvent
    from cognicraft.workspace import Workspace

_PROMPT = "> "
_HELP = """\
/sources   the sources of the last answer, with their text
/explain   how the last answer came about: what was searched, arms and ranks, time by step
/history   the questions of this session
/new       begin a new session
/quit      leave (as Ctrl-D does)
Ctrl-C stops an answer and keeps the session. All else is a question."""


def chat(
    workspace: WorkspaceName = None,
    home: Home = None,
    config_file: ConfigFile = None,
    as_json: Json = False,
    session: Annotated[
        str | None, typer.Option("--session", metavar="ID", help="Go on with a session, by the beginning of its id.")
    ] = None,
    last: Annotated[bool, typer.Option("--last", help="Go on with the last session.")] = False,
    listing: Annotated[bool, typer.Option("--list", help="List the sessions of the workspace, and leave.")] = False,
    delete: Annotated[str | None, typer.Option("--delete", metavar="ID", help="Delete a session, and leave.")] = None,
    model: Model = None,
    where: Where = None,
    plan: Plan = None,
    stream: Annotated[
        bool | None,
        typer.Option("--stream/--no-stream", help="Print answers while they are written (default: in a terminal)."),
    ] = None,
    changed: Set = None,
) -> None:
    """Ask and ask on: "and in 2021?" is taken with the question before it. Every turn is kept.

    Piped, each line is a question; `--json` prints one record a line. /help lists the commands.
    """
    from cognicraft.cli.options import parse_settings
    from cognicraft.cli.options import workspace as open_workspace
    from cognicraft.errors import UsageError

    if last and session is not None:
        raise UsageError("--last and --session both name a session.", remedy="Give one of them.")
    given = {"model.answer": model, "search.plan": plan}
    settings = {**parse_settings(changed), **{key: value for key, value in given.items() if value is not None}}
    with open_workspace(workspace, home, config_file) as opened:
        if listing:
            _list(opened, as_json=as_json)
        elif delete is not None:
            print(f"Deleted the session {opened.sessions.delete(delete).id}.")
        else:
            stream = sys.stdout.isatty() if stream is None else stream
            talk = _Talk(opened, where=where, settings=settings, as_json=as_json, stream=stream and not as_json)
            failed = talk.go("last" if last else session)
            if failed:
                raise typer.Exit(failed)


def _list(opened: Workspace, *, as_json: bool) -> None:
    from cognicraft.cli.output import print_json, table

    sessions = list(opened.sessions.list())
    if as_json:
        print_json(sessions)
    elif not sessions:
        print(f"There is no session in the workspace {opened.name} yet.")
    else:
        rows = [[one.id, one.started, str(one.turns), one.first_question[:60]] for one in sessions]
        table(["session", "started (UTC)", "turns", "first question"], rows, numeric=[2])


class _Talk:
    """The loop of one command."""

    def __init__(
        self, opened: Workspace, *, where: str | None, settings: dict[str, object], as_json: bool, stream: bool
    ) -> None:
        self._opened = opened
        self._where = where
        self._settings = settings
        self._as_json = as_json
        self._stream = stream
        self._failed = 0

    def go(self, session: str | None) -> int:
        """Until the person leaves; piped, the exit code of the first question that failed."""
        _ = self._opened.manifest  # a workspace that is not there is said before anything is asked
        self._opened.release()
        self._chat = self._begin_session(session)
        self._greet()
        for line in self._lines():
            if line in ("/quit", "/exit"):
                break
            if line.startswith("/"):
                self._command(line)
            elif line:
                self._ask(line)
        return 0 if sys.stdin.isatty() else self._failed

    def _begin_session(self, session: str | None) -> Chat:
        return self._opened.chat(session, where=self._where, settings=self._settings)

    def _lines(self) -> Iterator[str]:
        if not sys.stdin.isatty():
            for line in sys.stdin:
                if line.strip() and not self._as_json:
                    print(f"{_PROMPT}{line.strip()}", flush=True)
                yield line.strip()
            return
        with contextlib.suppress(ImportError):
            import readline

            for turn in self._chat.turns:
                readline.add_history(turn.question)
        while True:
            try:
                yield input(_PROMPT).strip()
            except EOFError:
                print()
                return
            except KeyboardInterrupt:
                print("\nCtrl-D or /quit leaves.")

    def _greet(self) -> None:
        if self._as_json:
            return
        from cognicraft.cli.output import plural, print_warnings

        turns = len(self._chat.turns)
        what = f"on with it after {plural(turns, 'turn')}" if turns else "new"
        print(f"Session {self._chat.id} in {self._opened.name} ({what}). /help lists the commands.", file=sys.stderr)
        note = "" if "model.answer" in self._settings else self._opened.answering()[1]
        print_warnings([*self._chat.notes, *([note] if note else [])])

    # ── a question ────────────────────────────────────────────────────────────────────────────────────────────

    def _ask(self, question: str) -> None:
        from cognicraft.cli.output import print_error
        from cognicraft.errors import CogniCraftError

        events: Iterator[AskEvent] | None = None
        try:
            events = self._chat.ask_stream(question)
            answer = self._print(events)
        except KeyboardInterrupt:
            print("\nStopped. The session is kept, without this question.", file=sys.stderr)
            self._failed = self._failed or 130
        except CogniCraftError as error:
            print_error(error)
            self._failed = self._failed or error.exit_code
        else:
            if not self._as_json:
                self._print_short_sources(answer)
        finally:
            if events is not None:
                events.close()  # type: ignore[attr-defined]  # a generator
            # Not held while the person thinks: others may ask, ingest or reindex meanwhile.
            self._opened.release()

    def _print(self, events: Iterator[AskEvent]) -> Answer:
        from cognicraft.cli.ask import print_events

        answer = print_events(events, stream=self._stream, quiet=self._as_json)
        if self._as_json:
            print(answer.model_dump_json(), flush=True)
        return answer

    def _print_short_sources(self, answer: Answer) -> None:
        from cognicraft.cli.ask import print_sources

        print_sources(answer)
        print(flush=True)

    # ── commands ──────────────────────────────────────────────────────────────────────────────────────────────

    def _command(self, line: str) -> None:
        from cognicraft.cli.output import print_error
        from cognicraft.errors import CogniCraftError

        known: dict[str, Callable[[], None]] = {
            "/sources": self._show_sources,
            "/explain": self._explain,
            "/history": self._history,
            "/new": self._new,
            "/help": self._help,
        }
        act = known.get(line.split()[0])
        if act is None:
            print(f"There is no command {line.split()[0]}; /help lists those there are.", file=sys.stderr)
            return
        try:
            act()
        except KeyboardInterrupt:
            print("\nStopped.", file=sys.stderr)
        except CogniCraftError as error:
            print_error(error)
        finally:
            self._opened.release()
            sys.stdout.flush()

    def _help(self) -> None:
        print(_HELP)

    def _new(self) -> None:
        self._chat = self._begin_session(None)
        self._greet()

    def _history(self) -> None:
        for number, turn in enumerate(self._chat.turns, start=1):
            taken = f"   (taken as: {turn.stand_alone})" if turn.stand_alone != turn.question else ""
            print(f"{number}. {turn.question}{taken}")
        if not self._chat.turns:
            print("Nothing was asked in this session yet.")

    def _show_sources(self) -> None:
        from cognicraft.cli.output import place

        turn = self._chat.turns[-1] if self._chat.turns else None
        if turn is None or turn.answer is None or not turn.answer.sources:
            print("There is no answer with sources yet.")
            return
        for source in turn.answer.sources:
            print(f"[{source.n}] {place(source.file, source.page, source.page_end, source.heading)}")
            print(f"    {' '.join(source.quote.split())}")

    def _explain(self) -> None:
        from cognicraft.cli.ask import print_explained
        from cognicraft.cli.search import _print_explained

        turn = self._chat.turns[-1] if self._chat.turns else None
        if turn is None:
            print("There is no answer to explain yet.")
            return
        print(f"searched as: {turn.stand_alone}")
        if turn.answer is not None:
            print_explained(turn.answer)
        # The arms of each passage are not kept with an answer: they are looked up again.
        print("\nthe passages found, with their rank and score in each arm:")
        _print_explained(self._opened.search(turn.stand_alone, where=self._where, settings=self._settings))
