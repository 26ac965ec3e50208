"""Language detection, of documents and of questions."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from cognicraft.ingest.language import WIDESPREAD, detect, detect_question, labels

SENTENCES = {
    "en": "Net sales of services rose in the third quarter, mostly because of higher prices.",
    "de": "Der Umsatz mit Dienstleistungen stieg im dritten Quartal, vor allem wegen höherer Preise.",
    "es": "Las ventas netas de servicios aumentaron en el tercer trimestre por los precios más altos.",
    "fr": "Les ventes nettes de services ont augmenté au troisième trimestre grâce à des prix plus élevés.",
    "ru": "Чистые продажи услуг выросли в третьем квартале, в основном из-за более высоких цен.",
    "el": "Οι καθαρές πωλήσεις υπηρεσιών αυξήθηκαν το τρίτο τρίμηνο λόγω υψηλότερων τιμών.",
    "ar": "ارتفعت المبيعات الصافية للخدمات في الربع الثالث بسبب ارتفاع الأسعار.",
    "hi": "तीसरी तिमाही में सेवाओं की शुद्ध बिक्री ऊंची कीमतों के कारण बढ़ी।",
    "th": "ยอดขายสุทธิของบริการเพิ่มขึ้นในไตรมาสที่สามเนื่องจากราคาที่สูงขึ้น",
    "tr": "Hizmetlerin net satışları üçüncü çeyrekte daha yüksek fiyatlar nedeniyle arttı.",
    "vi": "Doanh thu thuần từ dịch vụ tăng trong quý ba chủ yếu do giá cao hơn.",
    "zh": "由于价格上涨，第三季度服务净销售额有所增长，其他收入保持不变。",
    "ja": "第三四半期のサービス純売上高は、主に価格の上昇により増加しました。",
    "ko": "서비스 순매출은 주로 가격 인상으로 인해 3분기에 증가했습니다.",
}


@pytest.mark.parametrize("code", SENTENCES)
def test_a_sentence_is_enough(code: str) -> None:
    found = detect(SENTENCES[code])
    assert found.code == code
    assert found.confidence > 0.5


@pytest.mark.parametrize("code", SENTENCES)
def test_a_question_in_a_language_without_documents_is_known_as_such(code: str) -> None:
    others = {"en", "de"} - {code}
    assert detect_question(SENTENCES[code], among=others).code == code


@pytest.mark.parametrize("text", ["", "   ", "12 345,67", "a", "https://example.org/a/b/c", "x = y_1 + {z}"])
def test_too_little_text_is_unsure(text: str) -> None:
    assert detect(text).code == ""


def test_a_hint_decides_only_where_the_text_does_not() -> None:
    assert detect("12 34", hint="de").code == "de"
    assert detect(SENTENCES["en"] * 3, hint="de").code == "en"


def test_a_short_question_is_in_a_language_of_the_documents() -> None:
    assert detect_question("net sales", among=["en"]).code == "en"
    assert detect_question("Umsatz", among=["de", "ru"]).code == "de"
    assert detect_question("BM25", among=["en"]).code == ""
    assert detect_question("?", among=["en"]).code == ""


def test_a_short_question_without_documents_may_be_in_no_language() -> None:
    assert detect_question("BM25 MMR", among=[]).code in {"", *WIDESPREAD}


def test_candidates_that_the_model_does_not_know_do_no_harm() -> None:
    assert detect_question(SENTENCES["en"], among=["xx", "en"]).code == "en"


def test_the_main_language_wins() -> None:
    assert detect(SENTENCES["de"] * 20 + SENTENCES["en"] * 2 + SENTENCES["de"] * 20).code == "de"


def test_the_time_does_not_grow_with_the_text() -> None:
    detect(SENTENCES["en"])
    start = time.process_time()
    detect(SENTENCES["en"] * 50_000)
    assert time.process_time() - start < 0.5


def test_widespread_languages_are_known_to_the_model() -> None:
    assert labels() >= WIDESPREAD


@pytest.mark.parametrize(("folder", "code"), [("q_en_p_en", "en"), ("q_es_p_en", "es"), ("q_de_p_en", "de")])
def test_questions_of_xquad_are_in_their_language_whatever_the_documents_are_in(folder: str, code: str) -> None:
    path = Path("../shared/data/xquad", folder, "queries.jsonl")
    if not path.is_file():
        pytest.skip(f"{path} is not there")
    questions = [json.loads(line)["text"] for line in path.read_text(encoding="utf-8").splitlines()[:300]]
    for among in (["en"], ["en", "de", "es"], ["fr"]):
        right = sum(detect_question(question, among=among).code == code for question in questions)
        assert right >= 0.98 * len(questions), among
