"""Names of encoders, the words before texts, and the estimate of tokens."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cognicraft.errors import UsageError
from cognicraft.models.embed_prompts import prefixes_of
from cognicraft.models.embed_tokens import TOKENS_PER_PIECE, cut_to, pieces
from cognicraft.models.minilm import MiniLM
from cognicraft.models.provider_embedders import canonical_embedder_name, open_embedder


class TestNames:
    @pytest.mark.parametrize(
        ("given", "name"),
        [
            ("openai:text-embedding-3-small", "openai:text-embedding-3-small"),
            (" OpenAI: text-embedding-3-small@256 ", "openai:text-embedding-3-small@256"),
            ("gemini:gemini-embedding-001@768", "google:gemini-embedding-001@768"),
            ("ollama:nomic-embed-text:v1.5", "ollama:nomic-embed-text:v1.5"),
            ("hub:BAAI/bge-small-en-v1.5", "hub:BAAI/bge-small-en-v1.5"),
            ("minilm", "minilm"),
        ],
    )
    def test_have_one_way_to_be_written(self, given: str, name: str) -> None:
        assert canonical_embedder_name(given) == name

    def test_a_folder_is_the_same_from_everywhere(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        assert canonical_embedder_name("onnx:models/mine") == f"onnx:{tmp_path / 'models' / 'mine'}"

    @pytest.mark.parametrize(
        ("name", "hint"),
        [
            ("openia:text-embedding-3-small", "Did you mean openai:text-embedding-3-small"),
            ("nothing:at-all", "There are: openai, ollama"),
            ("openai:", "Write openai:text-embedding-3-small"),
            ("onnx:", "Write onnx:FOLDER"),
            ("openai:text-embedding-3-small@9999", "from 8 to 1536"),
            ("openai:text-embedding-3-small@100", "multiple of 8"),
            ("openai:text-embedding-3-small@many", "multiple of 8"),
            ("ollama:all-minilm@64", "Write ollama:all-minilm"),
            ("compatible:mine", "base URL"),
        ],
    )
    def test_that_cannot_be_meant_are_refused_with_a_hint(self, name: str, hint: str) -> None:
        with pytest.raises(UsageError, match=hint):
            open_embedder(name, api_key="k")

    def test_limits_that_cannot_be_meant_are_refused(self) -> None:
        for options in ({"timeout_s": 0.0}, {"retries": -1}, {"concurrency": 0}):
            with pytest.raises(UsageError):
                open_embedder("ollama:nomic-embed-text", **options)  # type: ignore[arg-type]

    def test_the_fingerprint_knows_name_dimensions_and_prefixes_but_no_key_and_no_address(self) -> None:
        def fingerprint(name: str, address: str = "http://127.0.0.1:1", key: str = "k") -> str:
            return open_embedder(name, base_url=address, api_key=key).fingerprint

        one = fingerprint("openai:text-embedding-3-small")
        assert one == fingerprint("openai:text-embedding-3-small", "http://127.0.0.1:2", "other")
        assert (
            len({one, fingerprint("openai:text-embedding-3-small@256"), fingerprint("openai:text-embedding-3-large")})
            == 3
        )

    def test_opening_one_imports_nothing_heavy(self) -> None:
        code = (
            "import sys; from cognicraft.models.provider_embedders import open_embedder;"
            "open_embedder('ollama:nomic-embed-text').fingerprint;"
            "print([m for m in ('onnxruntime', 'fastembed', 'openai', 'pydantic_ai', 'httpx', 'httpx2', 'tokenizers')"
            " if m in sys.modules])"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == "[]"


class TestPrefixes:
    @pytest.mark.parametrize(
        ("model", "query", "document"),
        [
            ("nomic-embed-text", "search_query: ", "search_document: "),
            ("nomic-ai/nomic-embed-text-v1.5-Q", "search_query: ", "search_document: "),
            ("mxbai-embed-large", "Represent this sentence for searching relevant passages: ", ""),
            ("BAAI/bge-small-en-v1.5", "Represent this sentence for searching relevant passages: ", ""),
            ("bge-m3", "", ""),
            ("all-minilm", "", ""),
            ("intfloat/multilingual-e5-large", "query: ", "passage: "),
            ("snowflake-arctic-embed2", "query: ", ""),
            ("snowflake-arctic-embed:335m", "Represent this sentence for searching relevant passages: ", ""),
            ("text-embedding-3-small", "", ""),
        ],
    )
    def test_are_those_of_the_model_card(self, model: str, query: str, document: str) -> None:
        assert prefixes_of(model) == (query, document)


class TestEstimate:
    @given(st.text())
    def test_covers_every_visible_character_in_order_without_overlap(self, text: str) -> None:
        spans = pieces(text)
        assert all(end <= start for (_, end), (start, _) in pairwise(spans))
        covered = {position for start, end in spans for position in range(start, end)}
        assert covered == {position for position, character in enumerate(text) if not character.isspace()}

    @given(st.text(), st.integers(0, 20))
    def test_cutting_leaves_at_most_that_many(self, text: str, most: int) -> None:
        cut = cut_to(text, most)
        assert text.startswith(cut)
        assert pieces(cut) == pieces(text)[:most]

    def test_holds_for_prose_tables_and_code_as_a_real_tokenizer_counts(self) -> None:
        embedder = MiniLM(threads=1)
        root = Path(__file__).parents[3]
        files = [
            root / "README.md",
            root / "CONTRIBUTING.md",
            Path(__file__),
            root / "tests/corpus/mountain/summits.md",
        ]
        for file in files:
            text = file.read_text(encoding="utf-8")
            spans = pieces(text)
            for first in range(0, len(spans), 250):
                window = spans[first : first + 250]
                real = len(embedder.token_offsets(text[window[0][0] : window[-1][1]]))
                assert real <= len(window) * TOKENS_PER_PIECE, file
