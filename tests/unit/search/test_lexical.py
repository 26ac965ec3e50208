"""Terms and BM25 weights."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cognicraft.search.lexical import PAIR_WEIGHT, STEMMERS, LexicalEncoder, term_index

ENCODER = LexicalEncoder()


def terms(text: str, language: str = "en") -> list[str]:
    return ENCODER.terms(text, language=language)


@pytest.mark.parametrize(
    ("one", "other", "language"),
    [
        ("19,604", "19604", "en"),
        ("1,234,567.89", "1234567.89", "en"),
        ("1.234,56", "1234.56", "de"),
        ("running", "runs", "en"),
        ("Häuser", "Haus", "de"),
        ("CAFÉ", "cafe", "en"),
        ("\ufb01nance", "finance", "en"),  # a ligature, as PDFs have them
        ("\uff21\uff22\uff23", "abc", "en"),  # full width
        ("getUserName", "get_user_name", "en"),
        ("os.path", "os-path", "en"),
        ("кошками", "кошка", "ru"),
        ("الكِتَاب", "الكتاب", "ar"),  # vowel signs
    ],
)
def test_spellings_of_one_word_give_the_same_terms(one: str, other: str, language: str) -> None:
    assert terms(one, language) == terms(other, language) != []


def test_an_identifier_gives_its_parts_and_the_whole() -> None:
    assert terms("parseHTTPResponse2", "") == ["parse", "http", "response", "2", "parsehttpresponse2"]


def test_a_decimal_number_stays_whole() -> None:
    assert terms("3.14 and 10.5%") == ["3.14", "10.5"]


def test_names_of_programming_languages_keep_their_signs() -> None:
    assert terms("C++ or C#") == ["c++", "c#"]


def test_scripts_without_spaces_give_bigrams() -> None:
    assert terms("東京都 2024", "ja") == ["東京", "京都", "2024"]
    assert terms("iPhone手机", "zh")[-1] == "手机"
    assert terms("語", "ja") == ["語"]


def test_words_with_combining_marks_stay_whole() -> None:
    assert terms("हिन्दी किताब", "") == ["हिन्दी", "किताब"]


def test_stop_words_are_those_of_the_language() -> None:
    assert terms("the die is cast") == ["die", "cast"]
    assert terms("die Würfel", "de") == terms("Würfel", "de")


def test_a_french_elision_leaves_the_word() -> None:
    assert terms("l'éléphant qu'il", "fr") == terms("éléphant", "fr")


@pytest.mark.parametrize("language", sorted(STEMMERS))
def test_every_language_of_the_map_has_a_stemmer(language: str) -> None:
    assert ENCODER.terms("xenon", language=language)


def test_document_weights_follow_the_formula() -> None:
    encoder = LexicalEncoder(k1=1.5, b=0.6, average_length=4)
    vector, sequence = encoder.document("wolf wolf moon wolf", language="en")
    assert sequence == ("wolf", "wolf", "moon", "wolf")
    weights = dict(zip(vector.indices.tolist(), vector.values.tolist(), strict=True))
    # length = average length, so the divisor is tf + k1
    assert weights[term_index("wolf")] == pytest.approx(3 * 2.5 / (3 + 1.5))
    assert weights[term_index("moon")] == pytest.approx(1 * 2.5 / (1 + 1.5))
    assert len(weights) == 2 + 3  # and the pairs wolf wolf, wolf moon, moon wolf


def test_a_longer_text_weighs_its_words_less() -> None:
    short, _ = ENCODER.document("wolf", language="en")
    long, _ = ENCODER.document("wolf " + "moon " * 500, language="en")
    weight = dict(zip(long.indices.tolist(), long.values.tolist(), strict=True))[term_index("wolf")]
    assert weight < float(short.values[0]) / 2


def test_a_question_keeps_counts_and_weighs_pairs_less() -> None:
    query = ENCODER.query("wolf moon wolf", languages=["en"])
    weights = dict(zip(query.indices.tolist(), query.values.tolist(), strict=True))
    assert weights[term_index("wolf")] == 2
    assert weights[term_index("moon")] == 1
    assert sorted(weights.values())[:2] == pytest.approx([PAIR_WEIGHT, PAIR_WEIGHT])


def test_word_order_matters_to_pairs_only() -> None:
    one, other = (ENCODER.query(text, languages=["en"]) for text in ("wolf moon", "moon wolf"))
    shared = set(one.indices.tolist()) & set(other.indices.tolist())
    assert shared == {term_index("wolf"), term_index("moon")}


def test_a_form_that_languages_share_counts_once() -> None:
    one = ENCODER.query("Berlin", languages=["de"])
    both = ENCODER.query("Berlin", languages=["de", "fi", "sv"])
    assert float(both.values.max()) == float(one.values.max()) == 1


def test_each_language_gives_its_own_form() -> None:
    query = ENCODER.query("nations", languages=["en", ""])
    assert {term_index("nation"), term_index("nations")} <= set(query.indices.tolist())


def test_english_stop_words_do_not_become_german_terms() -> None:
    query = ENCODER.query("what is the capital", languages=["en", "de"])
    assert term_index("the") not in query.indices.tolist()
    assert term_index("capit") in query.indices.tolist()


@pytest.mark.parametrize("text", ["", "  \n", "?!…", "the of and"])
def test_text_without_terms_gives_an_empty_vector(text: str) -> None:
    vector, sequence = ENCODER.document(text, language="en")
    assert len(vector.indices) == len(vector.values) == len(sequence) == 0
    assert len(ENCODER.query(text, languages=["en"]).indices) == 0


@given(st.text(max_size=300), st.sampled_from(["en", "de", "zh", "ar", "hi", "th", "", "xx"]))
def test_any_text_gives_a_valid_vector(text: str, language: str) -> None:
    vector, sequence = ENCODER.document(text, language=language)
    assert vector.indices.dtype == np.uint32
    assert vector.values.dtype == np.float32
    assert (np.diff(vector.indices.astype(np.int64)) > 0).all()
    assert (vector.values > 0).all()
    assert all(term and not term.isspace() for term in sequence)
    query = ENCODER.query(text, languages=[language])
    assert (np.diff(query.indices.astype(np.int64)) > 0).all()


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=200))
def test_a_text_shares_every_term_with_itself_as_question(text: str) -> None:
    """Up to stop words of the question, which are stop words of the document too."""
    vector, _ = ENCODER.document(text, language="en")
    query = ENCODER.query(text, languages=["en"])
    assert set(query.indices.tolist()) == set(vector.indices.tolist())


@given(st.text(max_size=100))
def test_analysis_knows_no_order_of_calls(text: str) -> None:
    assert LexicalEncoder().terms(text, language="en") == ENCODER.terms(text, language="en")


def test_threads_agree() -> None:
    encoder = LexicalEncoder()
    words = " ".join(f"running{n} jumps relational" for n in range(300))
    expected = LexicalEncoder().terms(words, language="en")
    found: list[list[str]] = []
    threads = [threading.Thread(target=lambda: found.append(encoder.terms(words, language="en"))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 8


def test_term_indices_stay_the_same_over_versions() -> None:
    assert (term_index("wolf"), term_index("東京")) == (849043033, 1168149181)


@pytest.mark.parametrize("arguments", [{"k1": -1}, {"b": 2}, {"average_length": 0}, {"k1": float("nan")}])
def test_constants_out_of_bounds_are_refused(arguments: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="BM25 needs"):
        LexicalEncoder(**arguments)


def test_a_question_reads_as_the_language_of_its_function_words() -> None:
    assert ENCODER.reads_as("what is the name of it", languages=["en"], rather_than="de")
    assert not ENCODER.reads_as("wie ist der Name", languages=["en"], rather_than="de")


@pytest.mark.parametrize(
    ("question", "code"),
    [
        ("What were the net sales of services?", "en"),
        ("¿Cuántos puntos dejaron escapar en la defensa de los Panthers?", "es"),
        ("Wie hoch ist der Berg in den Alpen?", "de"),
        ("net sales services", ""),
        ("", ""),
    ],
)
def test_function_words_tell_the_language_or_nothing(question: str, code: str) -> None:
    assert LexicalEncoder().language_by_function_words(question) == code
