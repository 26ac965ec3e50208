"""Rerank services over real sockets: each shape, and what is said when they fail."""

from __future__ import annotations

import json
import socket
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from cognicraft.errors import (
    ContextOverflow,
    ModelAuthentication,
    ModelError,
    ModelNotFound,
    ModelRateLimited,
    ModelReplyInvalid,
    ModelTimeout,
    ModelUnavailable,
    UsageError,
)
from cognicraft.models.remote_reranker import RemoteReranker, address_of
from rerank_servers import Fault, RerankServer, rerank_server

QUESTION = "when was the bridge opened"
PASSAGES = ["snow falls in the hills", "the bridge was opened in 1932", "bees dance"]
EXPECTED = [0.2, 0.8, 0.0]
SHAPES = ["cohere", "jina", "tei"]
GOOD_NAMES = {"cohere": "cohere:rerank-v3.5", "jina": "jina:jina-reranker-v2-base-multilingual"}


@pytest.fixture(params=SHAPES)
def server(request: pytest.FixtureRequest):  # type: ignore[no-untyped-def]
    with rerank_server(request.param) as server:
        yield server


@pytest.fixture
def tei():  # type: ignore[no-untyped-def]
    with rerank_server("tei") as server:
        yield server


def _reranker(server: RerankServer, **options: object) -> RemoteReranker:
    return RemoteReranker(server.url, **({"api_key": "test-key", "timeout_s": 10.0} | options))  # type: ignore[arg-type]


def test_scores_come_back_in_the_order_of_the_passages(server: RerankServer) -> None:
    reranker = _reranker(server)
    assert reranker.scores(QUESTION, PASSAGES) == EXPECTED
    assert reranker.shape == server.shape
    assert reranker.name == GOOD_NAMES.get(server.shape, f"tei:{server.address.removeprefix('http://')}")


def test_each_shape_sends_what_its_documentation_asks_for(server: RerankServer) -> None:
    _reranker(server).scores(QUESTION, PASSAGES)
    ((path, headers, body),) = server.requests
    assert headers["authorization"] == "Bearer test-key"
    assert headers["content-type"] == "application/json"
    if server.shape == "tei":
        assert path == "/rerank"
        assert body == {"query": QUESTION, "texts": PASSAGES, "truncate": True}
    elif server.shape == "jina":
        assert path == "/v1/rerank"
        model = "jina-reranker-v2-base-multilingual"
        assert body == {"model": model, "query": QUESTION, "documents": PASSAGES, "return_documents": False}
    else:
        assert path == "/v2/rerank"
        assert body == {"model": "rerank-v3.5", "query": QUESTION, "documents": PASSAGES}


def test_the_model_can_be_chosen(server: RerankServer) -> None:
    _reranker(server, model="rerank-other").scores(QUESTION, PASSAGES)
    assert server.requests[0][2].get("model", "rerank-other") == "rerank-other"


def test_blank_passages_are_not_sent_and_get_none(server: RerankServer) -> None:
    assert _reranker(server).scores(QUESTION, ["", *PASSAGES, " \n"]) == [None, *EXPECTED, None]
    assert _reranker(server).scores("  ", PASSAGES) == [None, None, None]
    assert len(server.requests) == 1


def test_many_passages_go_in_as_many_requests_as_the_service_takes(tei: RerankServer) -> None:
    passages = [f"the bridge {number}" for number in range(70)]
    assert _reranker(tei).scores(QUESTION, passages) == [0.4] * 70
    assert [len(body["texts"]) for _, _, body in tei.requests] == [32, 32, 6]


def test_a_server_that_takes_fewer_gets_halves(tei: RerankServer) -> None:
    tei.most_passages = 2
    assert _reranker(tei).scores(QUESTION, PASSAGES) == EXPECTED
    assert [len(body["texts"]) for _, _, body in tei.requests] == [3, 1, 2]


def test_a_passage_that_is_too_long_alone_is_named(tei: RerankServer) -> None:
    tei.most_characters = 50
    with pytest.raises(ContextOverflow, match=r"passage of 60 characters.*must have less tokens"):
        _reranker(tei).scores(QUESTION, [*PASSAGES, "x" * 60])


@pytest.mark.parametrize("status", [429, 500, 502, 503, 529])
def test_what_may_pass_is_tried_again(server: RerankServer, status: int) -> None:
    server.queue(Fault(status=status, headers={"Retry-After": "0"}), Fault(status=status, headers={"Retry-After": "0"}))
    assert _reranker(server).scores(QUESTION, PASSAGES) == EXPECTED
    assert len(server.requests) == 3


@pytest.mark.parametrize("politely", [False, True])
def test_a_connection_that_is_cut_is_tried_again(server: RerankServer, politely: bool) -> None:
    server.queue(Fault(body=b'{"results": [{"index": 0, "relevance_score"', cut_after=10, politely=politely))
    assert _reranker(server).scores(QUESTION, PASSAGES) == EXPECTED
    assert len(server.requests) == 2


def test_tries_end(server: RerankServer) -> None:
    server.queue(*[Fault(status=500, body=b'{"message": "out of memory"}', headers={"Retry-After": "0"})] * 9)
    with pytest.raises(ModelUnavailable, match=r"500: out of memory.*search.rerank_url"):
        _reranker(server, retries=2).scores(QUESTION, PASSAGES)
    assert len(server.requests) == 3


def test_retry_after_is_waited_for_in_seconds_and_as_a_date(server: RerankServer) -> None:
    soon = format_datetime(datetime.now(UTC) + timedelta(seconds=2), usegmt=True)
    server.queue(Fault(status=429, headers={"Retry-After": "0.4"}), Fault(status=503, headers={"Retry-After": soon}))
    started = time.monotonic()
    assert _reranker(server).scores(QUESTION, PASSAGES) == EXPECTED
    assert time.monotonic() - started > 0.9


def test_a_wait_longer_than_the_time_is_not_begun(server: RerankServer) -> None:
    server.queue(Fault(status=429, headers={"Retry-After": "3600"}))
    started = time.monotonic()
    with pytest.raises(ModelRateLimited, match="too many requests"):
        _reranker(server, timeout_s=5.0).scores(QUESTION, PASSAGES)
    assert time.monotonic() - started < 2
    assert len(server.requests) == 1


def test_without_retry_after_the_pause_is_its_own(server: RerankServer) -> None:
    server.queue(Fault(status=429))
    started = time.monotonic()
    assert _reranker(server).scores(QUESTION, PASSAGES) == EXPECTED
    assert time.monotonic() - started > 0.4


@pytest.mark.parametrize("fault", [Fault(hang_s=20), Fault(body=b" " * 200 + b"[]", drip_s=0.05)], ids=["hang", "drip"])
def test_silence_and_a_trickle_end_with_the_time(server: RerankServer, fault: Fault) -> None:
    server.queue(fault)
    started = time.monotonic()
    with pytest.raises(ModelTimeout, match=r"within 0\.5 s"):
        _reranker(server, timeout_s=0.5).scores(QUESTION, PASSAGES)
    assert time.monotonic() - started < 3


def test_nobody_there() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(ModelUnavailable, match=rf"127\.0\.0\.1:{port} cannot be reached.*search\.rerank_url"):
        RemoteReranker(f"http://127.0.0.1:{port}/rerank", retries=0).scores(QUESTION, PASSAGES)


def test_a_wrong_key_is_said_once_and_never_shown(server: RerankServer) -> None:
    with pytest.raises(ModelAuthentication, match="does not accept the key") as caught:
        _reranker(server, api_key="sk-secret-1").scores(QUESTION, PASSAGES)
    assert "sk-secret-1" not in str(caught.value)
    assert len(server.requests) == 1


def test_a_key_that_the_service_repeats_is_not_shown(server: RerankServer) -> None:
    server.queue(Fault(status=403, body=b'{"message": "key test-key is revoked"}'))
    with pytest.raises(ModelAuthentication, match="is revoked") as caught:
        _reranker(server).scores(QUESTION, PASSAGES)
    assert "test-key" not in str(caught.value)


def test_a_missing_key_is_asked_for(server: RerankServer) -> None:
    with pytest.raises(ModelAuthentication, match=r"asks for a key.*RERANK_API_KEY"):
        RemoteReranker(server.url, environment={}).scores(QUESTION, PASSAGES)


@pytest.mark.parametrize("shape", ["cohere", "jina"])
def test_an_unknown_model_is_named(shape: str) -> None:
    with rerank_server(shape) as server:  # type: ignore[arg-type]
        server.models = {"only-this"}
        with pytest.raises(ModelNotFound, match=r"'rerank-9' not found.*search.rerank_model"):
            _reranker(server, model="rerank-9").scores(QUESTION, PASSAGES)


@pytest.mark.parametrize(
    "body",
    [b"", b"not JSON", b"<html>", b"{}", b'{"results": 3}', b"[]", b'[{"index": 99, "score": 1}]', b'[{"index": 0}]',
     b'[{"index": 0, "score": "high"}]', b'[{"index": 0, "score": NaN}]', b"[null, 3]"],
)  # fmt: skip
def test_a_reply_of_another_form_is_invalid(server: RerankServer, body: bytes) -> None:
    server.queue(Fault(body=body))
    with pytest.raises(ModelReplyInvalid, match="cannot be used"):
        _reranker(server).scores(QUESTION, PASSAGES)
    assert len(server.requests) == 1


def test_a_passage_that_the_reply_leaves_out_gets_none(server: RerankServer) -> None:
    entries = [{"index": 2, "relevance_score": 0.5}, {"index": 0, "score": -1.5}, {"index": 0, "score": 9}]
    server.queue(Fault(body=json.dumps({"results": entries}).encode()))
    assert _reranker(server).scores(QUESTION, PASSAGES) == [-1.5, None, 0.5]


def test_used_up_quota_is_not_asked_again(server: RerankServer) -> None:
    server.queue(Fault(status=402, body=b'{"detail": "insufficient balance"}'))
    with pytest.raises(ModelRateLimited, match=r"quota is used up.*insufficient balance"):
        _reranker(server).scores(QUESTION, PASSAGES)
    assert len(server.requests) == 1


def test_another_refusal_tells_the_services_words(server: RerankServer) -> None:
    server.queue(Fault(status=400, body=b'{"error": {"message": "query is too strange"}}'))
    with pytest.raises(ModelError, match="400: query is too strange"):
        _reranker(server).scores(QUESTION, PASSAGES)


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_told_and_not_followed(server: RerankServer, status: int) -> None:
    with rerank_server(server.shape) as elsewhere:
        server.queue(Fault(status=status, headers={"Location": elsewhere.url}))
        with pytest.raises(ModelUnavailable, match="has moved") as caught:
            _reranker(server).scores(QUESTION, PASSAGES)
        assert elsewhere.url in caught.value.remedy
        assert elsewhere.requests == []


def test_lone_surrogates_are_sent_as_something_that_json_can_carry(server: RerankServer) -> None:
    assert len(_reranker(server).scores("bridge \ud800", ["bridge \udc00"])) == 1
    assert "bridge \ufffd" in json.dumps(server.requests[0][2], ensure_ascii=False)


@pytest.mark.parametrize(
    ("given", "url", "shape"),
    [
        ("cohere", "https://api.cohere.com/v2/rerank", "cohere"),
        ("jina", "https://api.jina.ai/v1/rerank", "jina"),
        ("https://api.cohere.com", "https://api.cohere.com/v2/rerank", "cohere"),
        ("https://api.cohere.com/v2", "https://api.cohere.com/v2/rerank", "cohere"),
        ("https://api.jina.ai/v1", "https://api.jina.ai/v1/rerank", "jina"),
        ("http://localhost:8080", "http://localhost:8080/rerank", "tei"),
        ("http://localhost:8080/rerank/", "http://localhost:8080/rerank", "tei"),
        ("http://gpu:8000/v1/rerank", "http://gpu:8000/v1/rerank", "jina"),
        ("http://gpu:8000/v2/rerank?tenant=1", "http://gpu:8000/v2/rerank?tenant=1", "cohere"),
        ("http://gpu:8000/team/reranker", "http://gpu:8000/team/reranker/rerank", "tei"),
    ],
)
def test_the_address_tells_the_shape(given: str, url: str, shape: str) -> None:
    assert address_of(given) == (url, shape)


def test_a_shape_that_is_set_wins_over_the_address() -> None:
    assert address_of("http://gpu:8000/rerank", "jina") == ("http://gpu:8000/rerank", "jina")
    assert address_of("http://gpu:8000", "cohere") == ("http://gpu:8000/v2/rerank", "cohere")


@pytest.mark.parametrize("url", ["", "coher", "ftp://a/rerank", "localhost:8080", "http://", "/rerank"])
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match="no address of a reranker"):
        RemoteReranker(url, environment={})


@pytest.mark.parametrize("wrong", [{"timeout_s": 0}, {"retries": -1}])
def test_numbers_that_cannot_be_meant_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(UsageError):
        RemoteReranker("http://localhost/rerank", **wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(("service", "variable"), [("cohere", "COHERE_API_KEY"), ("jina", "JINA_API_KEY")])
def test_the_providers_own_address_takes_its_own_variable(service: str, variable: str) -> None:
    with pytest.raises(ModelAuthentication, match=variable):
        RemoteReranker(service, environment={"RERANK_API_KEY": "other"})
    assert RemoteReranker(service, environment={variable: "own"}).shape == service


def test_another_server_never_sees_a_providers_key(server: RerankServer) -> None:
    server.key = None
    keys = {"COHERE_API_KEY": "cohere-key", "JINA_API_KEY": "jina-key"}
    RemoteReranker(server.url, environment=keys).scores(QUESTION, PASSAGES)
    RemoteReranker(server.url, environment=keys | {"RERANK_API_KEY": "own-key"}).scores(QUESTION, PASSAGES)
    sent = [headers.get("authorization") for _, headers, _ in server.requests]
    assert sent == [None, "Bearer own-key"]


def test_closing_ends_the_wait_between_tries(server: RerankServer) -> None:
    server.queue(*[Fault(status=503, headers={"Retry-After": "5"})] * 3)
    reranker = _reranker(server, timeout_s=60.0)
    reranker.close()
    started = time.monotonic()
    with pytest.raises(ModelUnavailable):
        reranker.scores(QUESTION, PASSAGES)
    assert time.monotonic() - started < 2
