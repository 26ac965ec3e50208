"""Encoders at providers: what is sent, how it is cut and batched, and what each failure says."""

from __future__ import annotations

import email.utils
import time

import numpy as np
import pytest

from cognicraft.errors import (
    ModelAuthentication,
    ModelError,
    ModelNotFound,
    ModelRateLimited,
    ModelReplyInvalid,
    ModelTimeout,
    ModelUnavailable,
)
from cognicraft.models import embed_http
from cognicraft.models.embed_remote import RemoteEmbedder
from cognicraft.models.provider_embedders import open_embedder
from embedding_servers import EmbeddingServer, Fault, embedding_server

KEY = "test-key"


def opened(server: EmbeddingServer, name: str, **options: float) -> RemoteEmbedder:
    embedder = open_embedder(name, base_url=server.base_url, api_key=KEY, **options)  # type: ignore[arg-type]
    assert isinstance(embedder, RemoteEmbedder)
    return embedder


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses between tries, which are not slept."""
    slept: list[float] = []
    monkeypatch.setattr(embed_http, "sleep", slept.append)
    return slept


class TestWhatIsSent:
    def test_google_is_told_what_is_a_question_and_what_a_document(self) -> None:
        with embedding_server("google") as server:
            embedder = opened(server, "google:gemini-embedding-001@768")
            embedder.encode_documents(["a boat"])
            embedder.encode_query("which boat?")
            tasks = [request.body["requests"][0] for request in server.requests]
            assert [task["taskType"] for task in tasks] == ["RETRIEVAL_DOCUMENT", "RETRIEVAL_QUERY"]
            assert {task["outputDimensionality"] for task in tasks} == {768}

    def test_the_second_gemini_encoder_is_told_by_words(self) -> None:
        with embedding_server("google") as server:
            embedder = opened(server, "google:gemini-embedding-2")
            embedder.encode_documents(["a boat"])
            embedder.encode_query("which boat?")
            assert server.texts == ["title: none | text: a boat", "task: search result | query: which boat?"]
            assert "taskType" not in server.requests[0].body["requests"][0]

    def test_cohere_is_told_what_is_a_question_and_what_a_document(self) -> None:
        with embedding_server("cohere") as server:
            embedder = opened(server, "cohere:embed-v4.0@512")
            embedder.encode_documents(["a boat"])
            embedder.encode_query("which boat?")
            assert [one.body["input_type"] for one in server.requests] == ["search_document", "search_query"]
            assert {one.body["output_dimension"] for one in server.requests} == {512}

    @pytest.mark.parametrize("protocol", ["ollama", "compatible"])
    def test_nomic_has_its_prefixes_wherever_it_runs(self, protocol: str) -> None:
        with embedding_server(protocol) as server:
            embedder = opened(server, f"{protocol}:nomic-embed-text")
            embedder.encode_documents(["a boat"])
            embedder.encode_query("which boat?")
            assert server.texts[-2:] == ["search_document: a boat", "search_query: which boat?"]

    def test_openai_is_asked_for_dimensions_only_where_they_were_chosen(self) -> None:
        with embedding_server("openai") as server:
            assert len(opened(server, "openai:text-embedding-3-small@256").encode_query("a").vector) == 256
            assert len(opened(server, "openai:text-embedding-3-small").encode_query("a").vector) == 1536
            assert [one.body.get("dimensions") for one in server.requests] == [256, None]

    def test_the_key_goes_where_the_provider_wants_it(self) -> None:
        for name, header in (("google:gemini-embedding-001", "x-goog-api-key"), ("cohere:embed-v4.0", "authorization")):
            with embedding_server(name.partition(":")[0]) as server:
                opened(server, name).encode_query("a")
                assert server.requests[0].headers[header].endswith(KEY)

    def test_keys_and_addresses_come_from_the_usual_variables(self, monkeypatch: pytest.MonkeyPatch) -> None:
        with embedding_server("openai") as server:
            monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
            monkeypatch.setenv("OPENAI_API_KEY", KEY)
            assert open_embedder("openai:text-embedding-3-small").encode_query("a").vector.shape == (1536,)
        with embedding_server("ollama") as server:
            monkeypatch.setenv("OLLAMA_HOST", server.base_url.removeprefix("http://"))
            assert open_embedder("ollama:nomic-embed-text").encode_query("a").vector.shape == (768,)

    def test_what_is_known_is_not_asked(self) -> None:
        with embedding_server("openai") as server:
            embedder = opened(server, "openai:text-embedding-3-large")
            assert (embedder.dimensions, embedder.max_tokens) == (3072, 6144)
            assert embedder.fingerprint
            assert server.requests == []

    def test_an_unknown_model_is_asked_once_for_its_dimensions(self) -> None:
        with embedding_server("compatible") as server:
            embedder = opened(server, "compatible:some-encoder")
            assert (embedder.dimensions, embedder.dimensions, embedder.max_tokens) == (64, 64, 384)
            assert len(server.requests) == 1

    def test_ollama_says_what_a_model_is(self) -> None:
        with embedding_server("ollama") as server:
            embedder = opened(server, "ollama:nomic-embed-text:latest")
            assert embedder.dimensions == 768
            embedder = opened(server, "ollama:some-encoder")
            assert embedder.dimensions == 768
            assert embedder.max_tokens == 1024 * 3 // 4  # num_ctx, which is less than the context length


class TestBatches:
    def test_a_request_holds_no_more_texts_than_the_provider_takes(self) -> None:
        with embedding_server("cohere") as server:
            texts = [f"text {number}" for number in range(200)]
            encodings = opened(server, "cohere:embed-v4.0@64").encode_documents(texts)
            assert sorted(len(one.texts) for one in server.requests) == [8, 96, 96]
            (alone,) = opened(server, "cohere:embed-v4.0@64").encode_documents(["text 150"])
            assert np.array_equal(encodings[150].vector, alone.vector)

    def test_requests_run_side_by_side_up_to_the_limit(self) -> None:
        with embedding_server("compatible") as server:
            server.pace_s = 0.1
            opened(server, "compatible:some-encoder", concurrency=3).encode_documents(["a"] * 32 * 7)
            assert server.most_running == 3

    def test_long_texts_fill_a_request_sooner(self) -> None:
        with embedding_server("google") as server:
            opened(server, "google:gemini-embedding-001").encode_documents(["word " * 1000] * 20)
            assert max(len(one.texts) for one in server.requests) == 7

    def test_a_text_without_a_visible_character_is_not_sent(self) -> None:
        with embedding_server("openai") as server:
            encodings = opened(server, "openai:text-embedding-3-small").encode_documents(["", "a boat", " \n"])
            assert server.texts == ["a boat"]
            assert np.array_equal(encodings[0].vector, encodings[2].vector)
            assert abs(float(encodings[0].vector @ encodings[1].vector)) < 0.1

    def test_after_a_failure_the_batches_that_wait_are_not_sent(self, pauses: list[float]) -> None:
        with embedding_server("compatible") as server:
            server.queue(Fault(), Fault(status=401))
            with pytest.raises(ModelAuthentication):
                opened(server, "compatible:some-encoder", concurrency=1).encode_documents(["a"] * 32 * 5)
            assert len(server.requests) == 2


class TestTexts:
    def test_a_text_that_the_provider_finds_too_long_is_cut_by_halves_and_counted(self) -> None:
        with embedding_server("openai") as server:
            server.most_tokens = 100
            embedder = opened(server, "openai:text-embedding-3-small")
            texts = ["a boat", "word " * 300, "a tree"]
            encodings = embedder.encode_documents(texts)
            assert embedder.shortened == 1
            assert [len(text) for text in server.texts if text.startswith("word ")][-1] <= 400
            for text, encoding in zip(texts[::2], encodings[::2], strict=True):
                assert np.array_equal(encoding.vector, embedder.encode_documents([text])[0].vector)

    def test_what_cannot_be_sent_is_replaced_one_for_one(self) -> None:
        with embedding_server("openai") as server:
            opened(server, "openai:text-embedding-3-small").encode_documents(["a\x00b\ud800c"])
            assert server.texts == ["a\ufffdb\ufffdc"]


class TestFailures:
    def test_a_wrong_key_is_said_without_the_key(self) -> None:
        for name in ("openai:text-embedding-3-small", "google:gemini-embedding-001", "cohere:embed-v4.0"):
            with embedding_server(name.partition(":")[0]) as server:
                embedder = open_embedder(name, base_url=server.base_url, api_key="sk-wrong-key-123456")
                with pytest.raises(ModelAuthentication, match="API key") as caught:
                    embedder.encode_query("a")
                assert "wrong-key" not in str(caught.value)
                assert len(server.requests) == 1

    def test_no_key_names_the_variable(self) -> None:
        with pytest.raises(ModelAuthentication, match="GEMINI_API_KEY or GOOGLE_API_KEY"):
            open_embedder("google:gemini-embedding-001")

    def test_a_model_that_is_not_there_names_the_remedy(self) -> None:
        with embedding_server("ollama") as server, pytest.raises(ModelNotFound, match="ollama pull absent"):
            opened(server, "ollama:absent").encode_query("a")
        with embedding_server("openai") as server, pytest.raises(ModelNotFound, match="Check the name"):
            opened(server, "openai:absent").encode_query("a")

    def test_a_failure_that_passes_is_not_seen(self, pauses: list[float]) -> None:
        with embedding_server("openai") as server:
            server.queue(Fault(status=500), Fault(status=503), Fault(cut=True))
            assert opened(server, "openai:text-embedding-3-small").encode_query("a").vector.shape == (1536,)
            assert len(server.requests) == 4
            assert [0.4 * 2**step <= pause <= 0.6 * 2**step for step, pause in enumerate(pauses)] == [True] * 3

    def test_a_failure_that_stays_is_said(self, pauses: list[float]) -> None:
        with embedding_server("openai") as server:
            server.queue(*[Fault(status=500)] * 3)
            with pytest.raises(ModelUnavailable, match=r"OpenAI failed to serve .* \(500\): It failed"):
                opened(server, "openai:text-embedding-3-small", retries=2).encode_query("a")
            assert len(server.requests) == 3

    def test_a_provider_that_asks_to_wait_is_obeyed(self, pauses: list[float]) -> None:
        with embedding_server("openai") as server:
            later = email.utils.formatdate(time.time() + 20, usegmt=True)
            server.queue(Fault(429, {"retry-after": "7"}), Fault(429, {"retry-after": later}))
            opened(server, "openai:text-embedding-3-small").encode_query("a")
            assert pauses[0] == 7
            assert 17 < pauses[1] <= 20

    def test_google_says_in_the_body_how_long_to_wait(self, pauses: list[float]) -> None:
        with embedding_server("google") as server:
            body = {"error": {"code": 429, "message": "Too many.", "details": [{"retryDelay": "13s"}]}}
            server.queue(Fault(429, json=body))
            opened(server, "google:gemini-embedding-001").encode_query("a")
            assert pauses == [13]

    def test_a_wait_of_many_minutes_is_not_waited(self, pauses: list[float]) -> None:
        with embedding_server("openai") as server:
            server.queue(Fault(429, {"retry-after": "3600"}))
            with pytest.raises(ModelRateLimited, match="wait 3600 s"):
                opened(server, "openai:text-embedding-3-small").encode_query("a")
            assert pauses == []

    def test_a_quota_that_is_used_up_is_not_asked_again(self, pauses: list[float]) -> None:
        with embedding_server("openai") as server:
            server.queue(Fault(429, json={"error": {"message": "You have no credit.", "code": "insufficient_quota"}}))
            with pytest.raises(ModelRateLimited, match="used up"):
                opened(server, "openai:text-embedding-3-small").encode_query("a")
            assert pauses == []

    @pytest.mark.parametrize("fault", [Fault(hang_s=5), Fault(drip_s=0.03)])
    def test_silence_and_a_dripping_reply_end_at_the_time_limit(self, fault: Fault) -> None:
        with embedding_server("openai") as server:
            server.queue(fault)
            started = time.monotonic()
            with pytest.raises(ModelTimeout, match=r"within 0\.3 s"):
                opened(server, "openai:text-embedding-3-small", timeout_s=0.3).encode_query("a")
            assert time.monotonic() - started < 3

    def test_half_a_reply_and_malformed_json_are_said(self, pauses: list[float]) -> None:
        with embedding_server("openai") as server:
            server.queue(*[Fault(cut=True)] * 2)
            with pytest.raises(ModelUnavailable, match="broke off"):
                opened(server, "openai:text-embedding-3-small", retries=1).encode_query("a")
            server.queue(*[Fault(malformed=True)] * 2)
            with pytest.raises(ModelReplyInvalid, match="not a JSON object"):
                opened(server, "openai:text-embedding-3-small", retries=1).encode_query("a")

    @pytest.mark.parametrize(
        ("body", "reason"),
        [
            ({"nothing": 1}, "no vectors as documented"),
            ({"data": []}, "0 vectors for 1 texts"),
            ({"data": [{"index": 0, "embedding": [1.0, 2.0]}]}, "2 dimensions, not 1536"),
            ({"data": [{"index": 0, "embedding": [0.0] * 1536}]}, "zero"),
            ({"data": [{"index": 1, "embedding": [1.0] * 1536}]}, "no vectors as documented"),
            ({"data": [{"index": 0, "embedding": "not base64"}]}, "no vectors as documented"),
        ],
    )
    def test_a_reply_of_another_shape_is_refused(self, body: object, reason: str) -> None:
        with embedding_server("openai") as server:
            server.queue(Fault(json=body))
            with pytest.raises(ModelReplyInvalid, match=reason):
                opened(server, "openai:text-embedding-3-small").encode_query("a")

    def test_nothing_at_the_address_is_said_at_once_with_the_remedy(self, pauses: list[float]) -> None:
        with embedding_server("ollama") as server:
            address = server.base_url
        with pytest.raises(ModelUnavailable, match=r"nothing listens there.* `ollama serve`"):
            open_embedder("ollama:nomic-embed-text", base_url=address).encode_query("a")
        assert pauses == []

    def test_any_other_refusal_keeps_the_provider_s_words(self) -> None:
        with embedding_server("cohere") as server:
            server.queue(Fault(status=422, json={"message": "this is not allowed"}))
            with pytest.raises(ModelError, match="this is not allowed"):
                opened(server, "cohere:embed-v4.0").encode_query("a")

    def test_a_web_page_instead_of_a_reply_is_not_quoted(self, pauses: list[float]) -> None:
        with embedding_server("compatible") as server:
            server.queue(Fault(status=502, json="<html><body>Bad gateway</body></html>"))
            with pytest.raises(ModelUnavailable) as caught:
                opened(server, "compatible:some-encoder", retries=0).encode_query("a")
            assert "html" not in str(caught.value)
