"""Every reranker of the package passes the conformance suite."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from cognicraft.models.cross_encoder import CrossEncoder
from cognicraft.models.llm import open_language_model
from cognicraft.models.remote_reranker import RemoteReranker
from cognicraft.protocols import Reranker
from cognicraft.search.blend import blend
from cognicraft.search.fuse import ranked
from cognicraft.search.rerank_llm import LlmReranker
from cognicraft.testing.reranker import PASSAGES, QUESTION, RerankerConformance
from model_servers import ModelServer
from provider_servers import Reply, Request, provider_server
from rerank_servers import rerank_server
from tiny_cross_encoder import tiny_cross_encoder


class TestBertCrossEncoder(RerankerConformance):
    steady = True

    @pytest.fixture
    def reranker(self, tmp_path: Path) -> Iterator[Reranker]:
        with closing(CrossEncoder(tiny_cross_encoder(tmp_path / "model").folder)) as reranker:
            yield reranker


class TestXlmCrossEncoderOnThreads(RerankerConformance):
    steady = True

    @pytest.fixture
    def reranker(self, tmp_path: Path) -> Iterator[Reranker]:
        folder = tiny_cross_encoder(tmp_path / "model", family="xlm-roberta", logits=2).folder
        with closing(CrossEncoder(folder, threads=2)) as reranker:
            yield reranker


@pytest.mark.parametrize("shape", ["cohere", "jina", "tei"])
class TestRemote(RerankerConformance):
    steady = True

    @pytest.fixture
    def reranker(self, shape: str) -> Iterator[Reranker]:
        with (
            rerank_server(shape) as server,  # type: ignore[arg-type]
            closing(RemoteReranker(server.url, api_key="test-key")) as reranker,
        ):
            yield reranker


def _judged(request: Request) -> Reply:
    """Grades by the length of the passage, or the order as it came."""
    numbers = [int(number) for number in re.findall(r'<passage-\w+ number="(\d+)">', request.text)]
    schema = json.dumps(request.schema)
    if '"order"' in schema:
        return Reply(text=json.dumps({"order": numbers}))
    return Reply(text=json.dumps({"grades": [{"passage": number, "grade": number % 11} for number in numbers]}))


@pytest.mark.parametrize("listwise", [False, True])
class TestLanguageModel(RerankerConformance):
    @pytest.fixture
    def reranker(self, listwise: bool) -> Iterator[Reranker]:
        with provider_server("openai") as server:
            server.respond = _judged
            with closing(open_language_model("compatible:test", base_url=server.base_url, api_key="test-key")) as model:
                yield LlmReranker(model, listwise=listwise)


@pytest.mark.parametrize("listwise", [False, True])
def test_a_real_model_ends_in_scores_or_in_a_note(llama_server: ModelServer, listwise: bool) -> None:
    """A model of 135 million parameters has no judgement; what counts: its replies end and come to something."""
    ranking = ranked({"a": 2.0, "b": 1.0})
    with closing(
        open_language_model(
            f"compatible:{llama_server.model}",
            base_url=llama_server.openai_url,
            api_key="none",
            context_tokens=4096,
            max_output_tokens=200,
        )
    ) as model:
        instructions = "Put the passages in order." if listwise else "Grade each passage from 0 to 10."
        reranker = LlmReranker(model, listwise=listwise, timeout_s=60, instructions=instructions)
        blended = blend(ranking, {"a": PASSAGES[1], "b": PASSAGES[0]}, question=QUESTION, reranker=reranker, share=0.7)
    assert {hit.chunk_id for hit in blended.ranking} == {"a", "b"}
    assert "token limit" not in str(blended.notes)
    assert all(0 <= hit.score <= 10 for hit in blended.judged)
    assert len(blended.judged) == 2 or blended.notes
