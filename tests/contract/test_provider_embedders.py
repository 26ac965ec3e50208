"""The shipped conformance suite over encoders at providers: stand-ins over a real socket, and a real Ollama."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import numpy as np
import pytest

from cognicraft.errors import ModelNotFound, ModelUnavailable
from cognicraft.models.minilm import MiniLM
from cognicraft.models.provider_embedders import open_embedder
from cognicraft.protocols import Embedder
from cognicraft.testing.embedder import AWKWARD, QUESTIONS, TEXTS, EmbedderConformance
from embedding_servers import embedding_server
from model_servers import EMBEDDING_MODEL, ModelServer, own_server


class _AtProvider(EmbedderConformance):
    token_codes = False
    protocol = ""
    encoder = ""

    @pytest.fixture(scope="class")
    @classmethod
    def embedder(cls) -> Iterator[Embedder]:
        with (
            embedding_server(cls.protocol) as server,
            closing(open_embedder(cls.encoder, base_url=server.base_url, api_key=server.key)) as embedder,
        ):
            yield embedder


class TestOpenAI(_AtProvider):
    protocol, encoder = "openai", "openai:text-embedding-3-small"


class TestOpenAIShortened(_AtProvider):
    protocol, encoder = "openai", "openai:text-embedding-3-large@384"


class TestCompatible(_AtProvider):
    protocol, encoder = "compatible", "compatible:nomic-embed-text"


class TestGoogle(_AtProvider):
    protocol, encoder = "google", "google:gemini-embedding-001@768"


class TestCohere(_AtProvider):
    # A model that reads 512 tokens: one of 128,000 would only take longer.
    protocol, encoder = "cohere", "cohere:embed-english-v3.0"


class TestOllama(_AtProvider):
    protocol, encoder = "ollama", "ollama:nomic-embed-text"


class TestRealOllama(EmbedderConformance):
    """The same weights as the shipped encoder, in 16 bits instead of 8, with Ollama's own tokenizer and runner."""

    token_codes = False
    same_bytes = False
    # Long texts, and many of them, take it seconds: the stand-in has those, this one has the test below instead.
    test_a_long_text_is_cut_at_the_limit = None
    test_a_very_long_text_without_a_space_is_encoded = None
    test_nothing_a_string_can_hold_makes_it_fail = None
    test_results_stand_in_the_order_of_the_texts = None
    test_a_text_has_the_same_bytes_whatever_it_is_encoded_with = None
    test_threads_do_not_disturb_each_other = None

    @pytest.fixture(scope="class")
    @classmethod
    def embedder(cls, ollama_server: ModelServer) -> Iterator[Embedder]:
        with closing(open_embedder(f"ollama:{EMBEDDING_MODEL}", base_url=ollama_server.url)) as embedder:
            yield embedder

    def test_company_order_and_threads_leave_a_text_its_vector(self, embedder: Embedder) -> None:
        texts = [*TEXTS[:2], *(text for text in AWKWARD if len(text) < 100)]
        together = embedder.encode_documents(texts)
        with ThreadPoolExecutor(3) as pool:
            alone = list(pool.map(lambda text: embedder.encode_documents([text])[0], texts))
        assert all(self._equal(left, right) for left, right in zip(together, alone, strict=True))

    def test_its_vectors_are_those_of_the_shipped_encoder(self, embedder: Embedder) -> None:
        with closing(MiniLM()) as shipped:
            for text in (*TEXTS[:3], *QUESTIONS[:3]):
                assert float(shipped.encode_query(text).vector @ embedder.encode_query(text).vector) > 0.98

    def test_what_the_server_says_of_a_model_is_what_its_vectors_are(self, ollama_server: ModelServer) -> None:
        # With its tag the name is not one that is known without asking.
        asked = open_embedder(f"ollama:{EMBEDDING_MODEL}:latest", base_url=ollama_server.url)
        tagged = open_embedder("ollama:smollm2:135m", base_url=ollama_server.url)
        assert asked.dimensions == len(asked.encode_query("a boat").vector)
        assert tagged.dimensions == 576

    def test_the_openai_protocol_of_a_real_server_gives_the_same_vectors(
        self, embedder: Embedder, ollama_server: ModelServer
    ) -> None:
        compatible = open_embedder(f"compatible:{EMBEDDING_MODEL}", base_url=ollama_server.openai_url)
        pairs = zip(compatible.encode_documents(TEXTS), embedder.encode_documents(TEXTS), strict=True)
        assert all(float(left.vector @ right.vector) > 0.9999 for left, right in pairs)
        assert compatible.dimensions == embedder.dimensions

    def test_a_model_that_was_not_pulled_names_the_remedy(self, ollama_server: ModelServer) -> None:
        with pytest.raises(ModelNotFound, match="ollama pull absent-model"):
            open_embedder("ollama:absent-model", base_url=ollama_server.url).encode_query("a boat")

    def test_a_server_that_was_killed_is_said(self) -> None:
        with own_server("ollama") as server:
            embedder = open_embedder(f"ollama:{EMBEDDING_MODEL}", base_url=server.url)
            embedder.encode_query("a boat")
            server.kill()
            with pytest.raises(ModelUnavailable, match="nothing listens there"):
                embedder.encode_query("a boat")

    def test_a_text_that_is_longer_than_estimated_is_cut_by_halves_and_counted(
        self, ollama_server: ModelServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from cognicraft.models import embed_remote

        # As if the model read more than it does.
        monkeypatch.setattr(embed_remote, "TOKENS_PER_PIECE", 0.1)
        embedder = open_embedder(f"ollama:{EMBEDDING_MODEL}", base_url=ollama_server.url)
        assert isinstance(embedder, embed_remote.RemoteEmbedder)
        short, long = embedder.encode_documents(["a boat", "a boat " * 300])
        assert embedder.shortened == 1
        assert np.isfinite(long.vector).all()
        assert float(short.vector @ embedder.encode_query("a boat").vector) > 0.999
