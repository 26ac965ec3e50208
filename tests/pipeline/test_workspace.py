"""A workspace from ingest to answer, on real files with the real engine and encoder."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from cognicraft import Workspace
from cognicraft.errors import (
    Cancelled,
    DocumentNotFound,
    EmbedderMismatch,
    FilterError,
    SettingsError,
    UsageError,
    WorkspaceFormat,
    WorkspaceLocked,
    WorkspaceNotFound,
)
from cognicraft.records import Document

CORPUS = Path(__file__).resolve().parents[1] / "corpus" / "mountain"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return shutil.copytree(CORPUS, tmp_path / "mountain")


@pytest.fixture
def workspace(home: Path) -> Iterator[Workspace]:
    with Workspace("alps") as opened:
        yield opened


def _files(workspace: Workspace) -> set[str]:
    return {Path(info.file.split("#")[0]).name for info in workspace.documents()}


def test_a_folder_goes_in_and_a_question_comes_back_with_its_source(workspace: Workspace, folder: Path) -> None:
    report = workspace.ingest(folder)
    assert (report.files, report.added, report.failed) == (4, 4, [])
    assert report.documents == 5, "a JSON array is many documents"

    answer = workspace.ask("Who led the first ascent of the Matterhorn?")
    assert answer.answered
    assert "Edward Whymper" in answer.answer
    cited = {n for sentence in answer.sentences for n in sentence.citations}
    assert cited == {source.n for source in answer.sources}
    first = answer.sources[0]
    assert first.file.endswith("summits.md")
    text = workspace.document(first.document_id).text
    assert text[first.start : first.end] == first.quote


def test_every_sentence_stands_in_the_answer_and_in_its_source(workspace: Workspace, folder: Path) -> None:
    workspace.ingest(folder)
    for question in ("What is föhn?", "How high is the Eiger?", "When does the spring gentian flower?"):
        answer = workspace.ask(question)
        assert answer.answered, question
        for sentence in answer.sentences:
            assert answer.answer[sentence.start : sentence.end] == sentence.text
            for n in sentence.citations:
                quote = answer.sources[n - 1].quote
                assert all(part in quote for part in sentence.text.split(" | ")), (sentence.text, quote)


def test_what_the_documents_do_not_tell_is_not_answered(workspace: Workspace, folder: Path) -> None:
    workspace.ingest(folder)
    answer = workspace.ask("What is the corporate income tax rate in Ireland?")
    assert not answer.answered
    assert answer.answer == "The documents do not tell."
    assert answer.sentences == []


def test_a_second_run_reads_nothing_again(workspace: Workspace, folder: Path) -> None:
    workspace.ingest(folder)
    report = workspace.ingest(folder)
    assert (report.added, report.changed, report.unchanged, report.chunks) == (0, 0, 4, 0)


def test_a_changed_file_replaces_its_old_text_everywhere(workspace: Workspace, folder: Path) -> None:
    workspace.ingest(folder)
    (folder / "weather.txt").write_text("Hail is frozen rain.\n")
    report = workspace.ingest(folder)
    assert (report.changed, report.unchanged) == (1, 3)
    for arms in (["dense"], ["lexical"], ["boolean"]):
        texts = [hit.text for hit in workspace.search("warm dry wind", arms=arms, limit=50).hits]
        assert not any("lee side" in text for text in texts), arms


def test_a_json_array_that_loses_an_element_loses_its_document(workspace: Workspace, folder: Path) -> None:
    workspace.ingest(folder)
    (folder / "huts.json").write_text('[{"name": "Goûter hut", "text": "The Goûter hut sleeps 120 people."}]')
    workspace.ingest(folder)
    assert not any("Hörnli" in hit.text for hit in workspace.search("Hörnli hut", limit=50).hits)
    assert sum("huts.json" in info.file for info in workspace.documents()) == 1


def test_a_vanished_file_is_reported_and_pruned_when_asked(workspace: Workspace, folder: Path) -> None:
    workspace.ingest(folder)
    (folder / "plants.html").unlink()
    report = workspace.ingest(folder)
    assert [Path(file).name for file in report.vanished] == ["plants.html"]
    assert "plants.html" in _files(workspace), "reported, not removed"
    assert workspace.ingest(folder, prune=True).pruned == 1
    assert "plants.html" not in _files(workspace)
    assert not any("Edelweiss" in hit.text for hit in workspace.search("Edelweiss", limit=50).hits)


def test_a_file_outside_the_folder_given_has_not_vanished(workspace: Workspace, folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "a.txt").write_text("Lakes are deep.")
    workspace.ingest(other)
    assert workspace.ingest(folder, prune=True).vanished == []
    assert "a.txt" in _files(workspace)


def test_two_files_of_equal_text_stay_two_sources(workspace: Workspace, folder: Path) -> None:
    shutil.copy(folder / "weather.txt", folder / "copy.txt")
    workspace.ingest(folder)
    files = {Path(hit.file).name for hit in workspace.search("warm dry wind on the lee side", limit=5).hits}
    assert {"weather.txt", "copy.txt"} <= files
    workspace.delete(str(folder / "copy.txt"))
    files = {Path(hit.file).name for hit in workspace.search("warm dry wind on the lee side", limit=5).hits}
    assert "weather.txt" in files
    assert "copy.txt" not in files


def test_a_bad_file_is_listed_and_the_good_ones_are_in(workspace: Workspace, folder: Path) -> None:
    (folder / "broken.pdf").write_bytes(b"%PDF-1.7\nnothing more")
    (folder / "empty.txt").write_bytes(b"")
    report = workspace.ingest(folder)
    assert {Path(failed.file).name: failed.code for failed in report.failed} == {
        "broken.pdf": "corrupt",
        "empty.txt": "empty",
    }
    listed = workspace.documents(failed=True)
    assert [Path(info.file).name for info in listed] == ["broken.pdf", "empty.txt"]
    assert all(info.error for info in listed)
    assert len(workspace.documents(failed=False)) == 5

    again = workspace.ingest(folder)
    assert len(again.failed) == 2, "still on the list"
    assert again.unchanged == 4

    (folder / "empty.txt").write_text("Not empty any more.")
    assert [Path(failed.file).name for failed in workspace.ingest(folder).failed] == ["broken.pdf"]


def test_a_failed_new_version_keeps_the_old_one_searchable_and_says_so(workspace: Workspace, folder: Path) -> None:
    workspace.ingest(folder)
    (folder / "weather.txt").write_bytes(b"")
    report = workspace.ingest(folder)
    assert [failed.code for failed in report.failed] == ["empty"]
    assert any("still searched" in warning for warning in report.warnings)
    assert any("lee side" in hit.text for hit in workspace.search("warm dry wind").hits)


def test_stopping_keeps_what_was_done_and_the_next_run_goes_on(workspace: Workspace, tmp_path: Path) -> None:
    folder = tmp_path / "many"
    folder.mkdir()
    for number in range(300):
        (folder / f"{number:03}.txt").write_text(f"Document number {number} speaks of topic {number}.")
    done: list[int] = []
    with pytest.raises(Cancelled) as caught:
        workspace.ingest(folder, progress=lambda now: done.append(now.files_done), cancelled=lambda: done[-1] >= 256)
    assert "run" in caught.value.remedy.lower()
    kept = len(workspace.documents())
    assert kept >= done[-1] >= 256
    report = workspace.ingest(folder)
    assert report.unchanged == kept
    assert len(workspace.documents()) == 300
    assert workspace.info().chunks == 300


def test_documents_are_found_by_id_prefix_and_file(workspace: Workspace, folder: Path) -> None:
    workspace.ingest(folder)
    info = next(info for info in workspace.documents() if info.file.endswith("weather.txt"))
    for name in (info.id, info.id[:8], info.file, "weather.txt"):
        shown = workspace.document(name)
        assert shown.document == info
        assert "lee side" in shown.text
    with pytest.raises(DocumentNotFound, match=r"nowhere\.txt"):
        workspace.document("nowhere.txt")
    with pytest.raises(UsageError, match="2 documents fit"):
        workspace.document(str(folder / "huts.json"))


def test_a_filter_narrows_a_search(workspace: Workspace, folder: Path) -> None:
    workspace.ingest(folder)
    hits = workspace.search("hut", where='country = "France"', limit=50).hits
    assert hits
    assert all("Goûter" in hit.text for hit in hits)
    with pytest.raises(FilterError):
        workspace.search("hut", where="country =")


@pytest.mark.parametrize("fusion", ["zscore", "minmax", "rrf", "dbsf"])
def test_every_fusion_gives_hits_with_the_way_they_came(workspace: Workspace, folder: Path, fusion: str) -> None:
    workspace.ingest(folder)
    result = workspace.search("Matterhorn first climbed", fusion=fusion)
    top = result.hits[0]
    assert "Matterhorn" in top.text
    assert {"dense", "lexical"} <= set(top.arms)
    assert [hit.rank for hit in result.hits] == list(range(1, len(result.hits) + 1))
    assert [hit.score for hit in result.hits] == sorted((hit.score for hit in result.hits), reverse=True)


def test_without_token_vectors_late_interaction_is_left_out(home: Path, folder: Path) -> None:
    with Workspace("bare", settings={"ingest.late_interaction": False}) as bare:
        bare.ingest(folder)
        assert "late-interaction" not in bare.search("Matterhorn").hits[0].arms
        assert bare.ask("What is föhn?").answered


def test_a_workspace_that_is_not_there_is_named_with_the_remedy(home: Path) -> None:
    with pytest.raises(WorkspaceNotFound, match="There is no workspace nothing") as caught:
        Workspace("nothing").search("x")
    assert "cognicraft ingest" in caught.value.remedy
    assert not home.exists(), "asking makes nothing"


def test_a_workspace_refuses_other_encoders_and_settings_than_its_own(
    workspace: Workspace, folder: Path, home: Path
) -> None:
    workspace.ingest(folder)
    workspace.close()
    with Workspace("alps", settings={"ingest.encoders": ("multilingual-e5",)}) as other:
        assert other.search("föhn").hits, "searching needs no setting of ingest"
        with pytest.raises(EmbedderMismatch, match="minilm"):
            other.ingest(folder)
    with (
        Workspace("alps", settings={"ingest.splitter": "recursive"}) as other,
        pytest.raises(SettingsError, match="structure"),
    ):
        other.ingest(folder)


def test_a_workspace_of_another_format_is_refused(workspace: Workspace, folder: Path) -> None:
    workspace.ingest(folder)
    workspace.close()
    manifest = workspace.path / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"format_version": 1', '"format_version": 99'))
    with pytest.raises(WorkspaceFormat, match="format 99"):
        Workspace("alps").search("x")


def test_a_workspace_held_elsewhere_names_its_holder(workspace: Workspace, folder: Path) -> None:
    workspace.ingest(folder)
    with (
        pytest.raises(WorkspaceLocked, match=rf"alps is in use by process {os.getpid()}"),
        Workspace("alps", settings={"lock_wait_s": 0}) as second,
    ):
        second.search("x")
    listed = workspace.list_workspaces()
    assert [(info.name, info.documents) for info in listed] == [("alps", None)]
    assert f"process {os.getpid()}" in listed[0].note


def test_a_workspace_held_for_a_moment_is_waited_for(workspace: Workspace, folder: Path) -> None:
    workspace.ingest(folder)
    timer = threading.Timer(0.5, workspace.close)
    timer.start()
    with Workspace("alps", settings={"lock_wait_s": 30}) as second:
        assert second.search("föhn").hits
    timer.join()


def test_a_workspace_is_deleted_whole(workspace: Workspace, folder: Path) -> None:
    workspace.ingest(folder)
    workspace.close()
    workspace.delete_workspace()
    assert not workspace.path.exists()
    assert workspace.list_workspaces() == []
    with pytest.raises(WorkspaceNotFound):
        workspace.delete_workspace()


def test_documents_in_memory_go_in_without_files(home: Path) -> None:
    documents = [
        Document(source=f"note:{n}", text=f"Note {n} is about {word}.") for n, word in enumerate(["tea", "jam"])
    ]
    with Workspace("notes", settings={"engine": "memory"}) as workspace:
        assert workspace.ingest_documents(documents).added == 2
        assert workspace.ingest_documents(documents).unchanged == 2
        assert workspace.search("jam").hits[0].file == "note:1"
    assert not home.exists(), "a memory workspace leaves nothing on disk"


def test_questions_from_many_threads_get_the_same_answers(workspace: Workspace, folder: Path) -> None:
    workspace.ingest(folder)
    questions = ["Who led the first ascent of the Matterhorn?", "What is föhn?", "Where does edelweiss grow?"]
    alone = [workspace.ask(question).answer for question in questions]
    together: dict[int, str] = {}

    def ask(number: int) -> None:
        together[number] = workspace.ask(questions[number % 3]).answer

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [together[number] for number in range(9)] == [alone[number % 3] for number in range(9)]


def test_an_empty_question_is_refused(workspace: Workspace, folder: Path) -> None:
    workspace.ingest(folder)
    with pytest.raises(UsageError, match="empty"):
        workspace.ask("   ")


def test_a_mistyped_path_is_named_and_makes_no_workspace(workspace: Workspace, home: Path) -> None:
    report = workspace.ingest("no-such-folder")
    assert [Path(failed.file).name for failed in report.failed] == ["no-such-folder"]
    assert not home.exists()


def test_a_mistyped_path_is_not_remembered_as_a_failed_file(workspace: Workspace, folder: Path) -> None:
    report = workspace.ingest(folder, folder / "no-such.txt")
    assert [Path(failed.file).name for failed in report.failed] == ["no-such.txt"]
    assert workspace.documents(failed=True) == []


def test_a_workspace_without_its_engine_files_is_refused_not_taken_for_empty(
    workspace: Workspace, folder: Path
) -> None:
    workspace.ingest(folder)
    workspace.close()
    (workspace.path / "engine.json").unlink()
    with pytest.raises(WorkspaceFormat, match="no engine files"):
        Workspace("alps").search("föhn")


def test_the_list_of_workspaces_counts_what_is_searchable(workspace: Workspace, folder: Path) -> None:
    (folder / "empty.txt").write_bytes(b"")
    workspace.ingest(folder)
    workspace.close()
    (listed,) = workspace.list_workspaces()
    assert (listed.documents, listed.chunks) == (5, 5)
