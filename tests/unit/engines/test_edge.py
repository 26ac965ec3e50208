"""What is Edge's own: the folder, the stamp, the lock, recovery, code files. The rest is in tests/contract."""

from __future__ import annotations

import contextlib
import itertools
import json
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace as altered
from pathlib import Path

import numpy as np
import pytest

from cognicraft.engines import disk, edge_store
from cognicraft.engines.edge import FORMAT_VERSION, EdgeEngine
from cognicraft.engines.memory import MemoryEngine
from cognicraft.errors import EngineError, MissingExtra, WorkspaceFormat, WorkspaceLocked
from cognicraft.testing.engine import assert_same
from cognicraft.testing.engine_samples import ARMS, document_id, sample_document, words_query


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "papers"


def make(path: Path) -> EdgeEngine:
    return EdgeEngine.create(path, dense=ARMS, token_codes=True)


def test_an_open_workspace_is_locked_for_others(path: Path) -> None:
    engine = make(path)
    with pytest.raises(WorkspaceLocked, match="papers"):
        EdgeEngine.open(path)
    with pytest.raises(WorkspaceLocked, match="papers"):
        make(path)
    engine.close()
    EdgeEngine.open(path).close()


def test_a_workspace_is_not_made_over_another(path: Path) -> None:
    make(path).close()
    with pytest.raises(EngineError, match="already"):
        make(path)
    EdgeEngine.open(path).close()


@pytest.mark.parametrize(
    ("stamp", "reason", "remedy"),
    [
        ({"format": FORMAT_VERSION + 1}, f"has format {FORMAT_VERSION + 1}", "newer cognicraft"),
        ({"format": 0}, "has format 0", "new workspace"),
        ({"engine": "qdrant"}, "belongs to the engine 'qdrant'", "that engine"),
    ],
)
def test_another_format_is_refused_and_left_alone(
    path: Path, stamp: dict[str, object], reason: str, remedy: str
) -> None:
    make(path).close()
    file = path / "engine.json"
    changed = json.dumps({**json.loads(file.read_text()), **stamp})
    file.write_text(changed)
    with pytest.raises(WorkspaceFormat, match=reason) as caught:
        EdgeEngine.open(path)
    assert remedy in caught.value.remedy
    assert file.read_text() == changed


@pytest.mark.parametrize("content", ["", "{", "[]", '{"format": 1}'])
def test_an_unreadable_stamp_is_refused(path: Path, content: str) -> None:
    make(path).close()
    (path / "engine.json").write_text(content)
    with pytest.raises(WorkspaceFormat, match=r"engine\.json"):
        EdgeEngine.open(path)


def test_a_folder_without_a_workspace_is_refused(path: Path) -> None:
    with pytest.raises(WorkspaceFormat, match=r"engine\.json"):
        EdgeEngine.open(path)
    assert not path.exists()


def test_a_creation_that_was_cut_off_is_begun_again(path: Path) -> None:
    engine = make(path)
    engine.replace([sample_document("left over", ["a"])])
    engine.close()
    (path / "engine.json").unlink()
    engine = make(path)
    assert list(engine.documents()) == []
    engine.close()


def test_a_missing_package_is_named(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "qdrant_edge", None)
    monkeypatch.delitem(sys.modules, "cognicraft.engines.edge_shard", raising=False)
    import cognicraft.engines

    monkeypatch.delattr(cognicraft.engines, "edge_shard", raising=False)
    with pytest.raises(MissingExtra, match=r"cognicraft\[edge\]"):
        make(path)


@pytest.mark.parametrize("lost", ["shard", "shard/segments", "shard/edge_config.json"])
def test_missing_files_are_an_engine_error_and_free_the_lock(path: Path, lost: str) -> None:
    make(path).close()
    target = path / lost
    shutil.rmtree(target) if target.is_dir() else target.unlink()
    for _ in range(2):
        with pytest.raises(EngineError, match="missing") as caught:
            EdgeEngine.open(path)
        assert "backup" in caught.value.remedy


def test_chunks_that_vanished_are_an_engine_error(path: Path) -> None:
    engine = make(path)
    engine.replace([sample_document("a", ["one", "two"])])
    engine._store.statistics.chunks = 3
    engine.close()
    with pytest.raises(EngineError, match="holds 2 chunks where 3"):
        EdgeEngine.open(path)


def test_counts_are_right_without_the_saved_ones(path: Path) -> None:
    oracle = MemoryEngine(dense=ARMS)
    engine = make(path)
    for one in (engine, oracle):
        one.replace([sample_document("a", ["red fox", "blue"]), sample_document("b", ["fox"], language="de")])
        one.delete([document_id("b")])
    engine.close()
    (path / "statistics.npz").unlink()
    engine = EdgeEngine.open(path)
    assert_same(engine, oracle)
    engine.close()


@pytest.mark.parametrize("pieces", [False, True], ids=["one entry", "several entries"])
def test_a_write_that_fails_in_between_is_whole_or_not_at_all(
    path: Path, monkeypatch: pytest.MonkeyPatch, pieces: bool
) -> None:
    """A step of the shard raises once; what is there then, and after reopening, is one revision or the other."""
    if pieces:
        monkeypatch.setattr(edge_store, "POINTS_AT_ONCE", 2)
    engine = make(path)
    oracle = MemoryEngine(dense=ARMS)
    for name, step, call in [(f"{step} {call}", step, call) for step in STEPS for call in range(3)]:
        old = sample_document(name, ["red fox", "blue bear", "old one", "kept words"], metadata={"year": 1})
        # The same revision: chunks with the ids of old ones are written over them.
        new = sample_document(name, ["kept words", "new fox", "new bear", "red fox", "more"], metadata={"year": 2})
        engine.replace([old])
        with monkeypatch.context() as patch:
            patch.setattr(engine._store.shard, step, failing_once(getattr(engine._store.shard, step), call))
            with contextlib.suppress(EngineError):
                engine.replace([new])
        record = engine.document(document_id(name))
        assert record is not None
        there = new if record.metadata == {"year": 2} else old
        oracle.replace([there])
        assert {one.id for one in engine.document_chunks(record.id)} == {chunk.id for chunk in there.chunks}
        for text in ("red fox", "new"):
            found = engine.search_lexical(words_query(text), limit=100)
            every = oracle.search_lexical(words_query(text), limit=100)
            assert [one.score for one in found] == pytest.approx([one.score for one in every], rel=1e-4)
    engine.close()
    engine = EdgeEngine.open(path)
    assert {one.id for one in engine.documents()} == {one.id for one in oracle.documents()}
    assert engine.info().chunks == oracle.info().chunks
    engine.close()


def test_a_failed_step_is_an_error_that_says_why_and_can_be_tried_again(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = make(path)
    document = sample_document("a", ["red fox"])
    with monkeypatch.context() as patch:
        patch.setattr(engine._store.shard, "upsert", failing_once(engine._store.shard.upsert, 0))
        with pytest.raises(EngineError, match="no space left on device"):
            engine.replace([document])
    assert list(engine.documents()) == []
    engine.replace([document])
    assert list(engine.documents()) == [document.record]
    engine.close()


STEPS = ("upsert", "delete", "set_payload")


def failing_once(real: Callable[..., None], call: int) -> Callable[..., None]:
    """The function, raising at its call of that number."""
    calls = itertools.count()

    def function(*arguments: object) -> None:
        if next(calls) == call:
            raise OSError("no space left on device")
        real(*arguments)

    return function


def test_a_graph_that_cannot_be_built_is_told_and_searches_go_on(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = make(path)
    engine._tail_wanted = 1
    monkeypatch.setattr(sys, "executable", str(path / "no-python"))
    engine.replace([sample_document("a", ["red fox"])])
    assert "could not be built" in engine.info().detail["graph_error"]
    assert len(engine.search_lexical(words_query("fox"), limit=3)) == 1
    assert [folder.name for folder in path.glob("shard*")] == ["shard"]
    engine.close()


def test_room_of_deleted_token_codes_is_given_back(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edge_store, "RECLAIM_BYTES", 10)
    oracle = MemoryEngine(dense=ARMS)
    engine = make(path)
    held = [sample_document(str(number), ["a b c d", "e f g"]) for number in range(20)]
    for one in (engine, oracle):
        one.replace(held)
        one.delete([document.record.id for document in held[:15]])
    assert_same(engine, oracle)
    live = sum(codes.nbytes for one in held[15:] for chunk in one.chunks for codes in chunk.token_codes.values())
    assert sum(file.stat().st_size for file in (path / "codes").iterdir()) == live
    engine.close()
    engine = EdgeEngine.open(path)
    assert_same(engine, oracle)
    engine.close()


def test_an_engine_without_token_codes_refuses_and_returns_none(path: Path) -> None:
    engine = EdgeEngine.create(path, dense=ARMS, token_codes=False)
    with pytest.raises(EngineError, match="without"):
        engine.replace([sample_document("a", ["x"])])
    document = sample_document("a", ["x"], token_codes=False)
    engine.replace([document])
    assert engine.token_codes("first", [document.chunks[0].id]) == [None]
    engine.close()


def test_an_engine_without_dense_arms_searches_words(path: Path) -> None:
    engine = EdgeEngine.create(path, dense={}, token_codes=False)
    document = sample_document("a", ["red fox"], token_codes=False)
    (chunk,) = document.chunks
    engine.replace([altered(document, chunks=(altered(chunk, dense={}),))])
    assert len(engine.search_lexical(words_query("fox"), limit=3)) == 1
    with pytest.raises(EngineError, match="none"):
        engine.search_dense("first", np.ones(16, np.float32), limit=1)
    engine.close()
    EdgeEngine.open(path).close()


def test_a_disk_that_is_nearly_full_is_refused_before_a_write_and_loses_nothing(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = make(path)
    engine.replace([sample_document("a", ["one text"])])
    with monkeypatch.context() as full:
        full.setattr(disk, "MIN_FREE_BYTES", shutil.disk_usage(path).total + 1)
        with pytest.raises(EngineError, match="nearly full") as caught:
            engine.replace([sample_document("b", ["another text"])])
        assert "kept" in caught.value.remedy
    assert engine.document(document_id("a")) is not None
    assert engine.document(document_id("b")) is None
    engine.replace([sample_document("b", ["another text"])])
    assert engine.info().documents == 2
    engine.close()
