"""Conversations on disk: durable by the turn, found by id, whole after a damage."""

from __future__ import annotations

import json
import os
import re
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from cognicraft.errors import EngineError, NotFound, UsageError
from cognicraft.sessions import ChatTurn, Session, Sessions


def turn(number: int) -> ChatTurn:
    return ChatTurn(
        at="2026-01-01T00:00:00+00:00",
        question=f"question {number}",
        stand_alone=f"stand-alone {number}",
        text=f"answer {number} — “ü”\nsecond line \ud83d\ude00".encode("utf-16", "surrogatepass").decode("utf-16"),
        answer=None,
    )


@pytest.fixture
def sessions(tmp_path: Path) -> Sessions:
    return Sessions(tmp_path / "sessions" / "alps", workspace="alps")


def filled(sessions: Sessions, turns: int) -> Session:
    session = sessions.new()
    for number in range(turns):
        session.append(turn(number))
    return session


def test_what_was_appended_is_read_back_by_another_reader(sessions: Sessions) -> None:
    session = filled(sessions, 3)
    again = sessions.open(session.id)
    assert again.turns == session.turns == [turn(0), turn(1), turn(2)]
    assert (again.started, again.notes) == (session.started, [])
    again.append(turn(3))
    assert len(sessions.open(session.id).turns) == 4


def test_a_session_without_a_turn_leaves_nothing(sessions: Sessions, tmp_path: Path) -> None:
    sessions.new()
    assert list(tmp_path.iterdir()) == []
    assert list(sessions.list()) == []
    with pytest.raises(NotFound, match="yet"):
        sessions.open("last")


def test_ids_sort_by_time_and_open_by_their_beginning_or_as_last(sessions: Sessions) -> None:
    made = [filled(sessions, 1) for _ in range(3)]
    assert all(re.fullmatch(r"\d{8}-\d{6}-\d{3}-[0-9a-f]{4}", one.id) for one in made)
    assert [one.id[:19] for one in made] == sorted(one.id[:19] for one in made)
    assert [one.id for one in sessions.list()] == sorted((one.id for one in made), reverse=True)
    assert sessions.open("last").id == max(one.id for one in made)
    assert sessions.open(made[0].id).id == made[0].id
    with pytest.raises(UsageError, match="3 sessions"):
        sessions.open(made[0].id[:6])
    for wrong in ("1999", "", "../alps", "*"):
        with pytest.raises(NotFound):
            sessions.open(wrong)


def test_deleting_takes_one_away(sessions: Sessions) -> None:
    one, other = filled(sessions, 1), filled(sessions, 1)
    assert sessions.delete(one.id).turns == 1
    assert sessions.ids() == [other.id]
    with pytest.raises(NotFound):
        sessions.delete(one.id)


@pytest.mark.parametrize("cut", [1, 20, 60])
def test_half_a_last_line_is_left_out_said_and_written_over(sessions: Sessions, cut: int) -> None:
    session = filled(sessions, 3)
    session.path.write_bytes(session.path.read_bytes()[:-cut])
    damaged = sessions.open(session.id)
    assert damaged.turns == [turn(0), turn(1)]
    assert any("cut off" in note for note in damaged.notes)
    damaged.append(turn(7))
    again = sessions.open(session.id)
    assert again.turns == [turn(0), turn(1), turn(7)]
    assert again.notes == []


def test_a_damaged_line_in_the_middle_costs_that_line(sessions: Sessions) -> None:
    session = filled(sessions, 3)
    lines = session.path.read_bytes().splitlines(keepends=True)
    lines[2] = b"\x00\xff garbage\n"
    session.path.write_bytes(b"".join(lines))
    damaged = sessions.open(session.id)
    assert damaged.turns == [turn(0), turn(2)]
    assert any("1 damaged" in note for note in damaged.notes)


def test_an_answer_of_another_version_keeps_its_text(sessions: Sessions) -> None:
    session = filled(sessions, 1)
    tree = {**turn(1).model_dump(), "answer": {"question": "q", "invented": 1}, "more": 2}
    with session.path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(tree) + "\n")
    assert sessions.open(session.id).turns[1] == turn(1)


@pytest.mark.skipif(os.name != "posix", reason="permissions as on POSIX")
def test_nobody_else_reads_a_conversation(sessions: Sessions) -> None:
    session = filled(sessions, 1)
    assert stat.S_IMODE(session.path.stat().st_mode) == 0o600


def test_a_folder_that_cannot_be_written_is_said(ordinary_folder: Path) -> None:
    folder = ordinary_folder / "sessions"
    folder.mkdir()
    folder.chmod(0o500)
    with pytest.raises(EngineError, match="cannot be written"):
        filled(Sessions(folder / "alps", workspace="alps"), 1)
    folder.chmod(0o700)


@pytest.mark.skipif(os.name != "posix", reason="signals as on POSIX")
def test_a_kill_loses_no_turn_that_was_written(tmp_path: Path) -> None:
    code = (
        "import sys\nfrom pathlib import Path\nfrom cognicraft.sessions import ChatTurn, Sessions\n"
        "session = Sessions(Path(sys.argv[1]), workspace='alps').new()\n"
        "for n in range(100_000):\n"
        "    session.append(ChatTurn(at='', question=str(n), stand_alone='x' * 5000, text='', answer=None))\n"
        "    print(n, flush=True)\n"
    )
    child = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    for line in child.stdout:
        if int(line) == 30:
            break
    child.send_signal(signal.SIGKILL)
    acknowledged = [30, *(int(line) for line in child.stdout.read().splitlines() if line.isdigit())][-1]
    child.stdout.close()
    child.wait()
    session = Sessions(tmp_path, workspace="alps").open("last")
    assert [one.question for one in session.turns][: acknowledged + 1] == [str(n) for n in range(acknowledged + 1)]
    assert len(session.turns) <= acknowledged + 2
