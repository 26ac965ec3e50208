"""Workspaces whose encoder runs elsewhere: over the provider's protocol on a real socket."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cognicraft import Workspace
from cognicraft.errors import EmbedderMismatch, ModelAuthentication, ModelUnavailable
from embedding_servers import EmbeddingServer, Fault, embedding_server

MOUNTAIN = Path(__file__).resolve().parents[1] / "corpus" / "mountain"
QUESTION = "How high is Mont Blanc?"
NAME = "compatible:some-encoder"


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    with embedding_server("compatible") as started:
        yield started


def opened(home: Path, server: EmbeddingServer, **more: object) -> Workspace:
    own = {"ingest.encoders": (NAME,), "model.base_url": server.base_url, "model.api_key": "test-key"}
    return Workspace("alps", home=home, settings={**own, "model.answer": "none", **more})


@pytest.fixture
def workspace(tmp_path: Path, server: EmbeddingServer) -> Iterator[Workspace]:
    with opened(tmp_path, server) as made:
        made.ingest(MOUNTAIN)
        yield made


def test_documents_are_found_and_quoted(workspace: Workspace) -> None:
    assert workspace.manifest.encoder_names == (NAME,)
    assert "4,806" in workspace.ask(QUESTION).answer
    assert workspace.search(QUESTION).warnings == []


def test_an_encoder_that_cannot_be_reached_leaves_the_words(workspace: Workspace, server: EmbeddingServer) -> None:
    server.queue(*[Fault(status=503, headers={"retry-after": "0"})] * 4)
    found = workspace.search(QUESTION)
    assert found.hits
    assert set(found.hits[0].arms) == {"lexical"}
    assert any(f"The arm {NAME} was left out" in warning for warning in found.warnings)


def test_without_another_arm_it_is_an_error(workspace: Workspace, server: EmbeddingServer) -> None:
    server.queue(*[Fault(status=503, headers={"retry-after": "0"})] * 4)
    with pytest.raises(ModelUnavailable):
        workspace.search(QUESTION, arms=["dense"])


def test_a_wrong_key_is_an_error_and_makes_no_workspace(tmp_path: Path, server: EmbeddingServer) -> None:
    server.key = "test-key"
    with opened(tmp_path, server, **{"model.api_key": "wrong-key"}) as workspace:
        with pytest.raises(ModelAuthentication) as caught:
            workspace.ingest(MOUNTAIN)
        assert "wrong-key" not in str(caught.value)
        assert not workspace.exists()


def test_a_workspace_refuses_another_encoder_with_the_remedy(tmp_path: Path, server: EmbeddingServer) -> None:
    with Workspace("alps", home=tmp_path) as first:
        first.ingest(MOUNTAIN)
    with opened(tmp_path, server) as workspace, pytest.raises(EmbedderMismatch, match="reindex"):
        workspace.ingest(MOUNTAIN)


def test_a_workspace_is_moved_to_a_provider_and_back(tmp_path: Path, server: EmbeddingServer) -> None:
    with Workspace("alps", home=tmp_path) as first:
        first.ingest(MOUNTAIN)
        expected = [hit.text for hit in first.search(QUESTION, limit=3).hits]
    with opened(tmp_path, server) as workspace:
        assert workspace.reindex(NAME).switched
        assert "4,806" in workspace.ask(QUESTION).answer
        assert workspace.reindex("minilm").encoders == ["minilm"]
        assert [hit.text for hit in workspace.search(QUESTION, limit=3).hits] == expected
