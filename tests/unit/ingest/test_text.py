"""Plain text: its encodings, its paragraphs, its refusals."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cognicraft.errors import BinaryFile, CorruptFile, EmptyFile, FileTooLarge, ReadError, UsageError
from cognicraft.ingest.clean import clean
from cognicraft.ingest.read import read_file
from unit.ingest.reading import assert_sound, blocks_of, read_one, write

GERMAN = "Größe und Übergröße für fünf Räder.\nDer Umsatz lag höher als im Vorjahr.\n"
RUSSIAN = "Это русский текст, который записан в старой кодировке.\nПоиск должен его найти.\n"
JAPANESE = "これは日本語のテキストです。\n検索エンジンは文書を読みます。\n"


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        (GERMAN, "utf-8"),
        (GERMAN, "utf-8-sig"),
        (GERMAN, "utf-16"),
        (GERMAN, "utf-16-le"),
        (GERMAN, "utf-16-be"),
        (GERMAN, "utf-32-le"),
        (GERMAN, "windows-1252"),
        ("Señor Muñoz, ¿qué pasó mañana?\n", "windows-1252"),
        ("Le café est fermé l'été, à bientôt.\n", "windows-1252"),
        ("Zażółć gęślą jaźń, proszę bardzo.\n", "windows-1250"),
        ("Bu bir Türkçe metindir, şöyle böyle ığüşöç.\n", "windows-1254"),
        ("Αυτό είναι ένα ελληνικό κείμενο για δοκιμή.\n", "windows-1253"),
        (RUSSIAN, "koi8-r"),
        (RUSSIAN, "windows-1251"),
        (RUSSIAN, "utf-16-le"),
        (JAPANESE, "shift_jis"),
        (JAPANESE, "euc_jp"),
        (JAPANESE, "utf-16-be"),
        ("这是一个中文文本，用于测试编码检测。搜索引擎读取文档。\n", "gb18030"),
        ("이것은 한국어 텍스트입니다. 검색 엔진은 문서를 읽습니다.\n", "euc-kr"),
    ],
)
def test_text_is_read_in_the_encoding_it_was_written_in(tmp_path: Path, text: str, encoding: str) -> None:
    assert read_one(write(tmp_path, "a.txt", text.encode(encoding))).text == text.strip()


def test_an_encoding_that_is_insisted_on_is_used(tmp_path: Path) -> None:
    path = write(tmp_path, "a.txt", "Größe".encode())
    assert read_one(path, encoding="windows-1252").text == "GrÃ¶ÃŸe"


def test_an_encoding_that_does_not_fit_or_exist_is_an_error(tmp_path: Path) -> None:
    path = write(tmp_path, "a.txt", b"Gr\xf6\xdfe")
    with pytest.raises(CorruptFile, match=r"a\.txt is not valid utf-8 at byte 2"):
        read_one(path, encoding="utf-8")
    with pytest.raises(UsageError, match="no encoding 'utf-9'"):
        read_one(path, encoding="utf-9")


def test_few_damaged_bytes_in_utf8_are_shown_and_named(tmp_path: Path) -> None:
    data = (RUSSIAN * 10).encode() + b"\xff" + RUSSIAN.encode()
    document = read_one(write(tmp_path, "a.txt", data))
    assert document.text.count("\ufffd") == 1
    assert document.warnings == ("1 bytes are not UTF-8 and are shown as \ufffd.",)


def test_a_file_cut_inside_a_character_keeps_the_rest(tmp_path: Path) -> None:
    document = read_one(write(tmp_path, "a.txt", RUSSIAN.encode() + "я".encode()[:1]))
    assert document.text == RUSSIAN.strip()
    assert "middle of a character" in document.warnings[0]


@pytest.mark.parametrize("content", [b"", b" \n\t\r\n ", b"\xef\xbb\xbf", b"\x0c\n"])
def test_no_text_is_an_empty_file(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(EmptyFile, match=r"a\.txt"):
        read_one(write(tmp_path, "a.txt", content))


@pytest.mark.parametrize(
    "content",
    [b"\x00\x01\x02\x03" * 100, bytes(range(256)) * 8, b"text \x00\x00\x00 text", b"\x01\x02\x03\x04abc" * 50],
    ids=["zeros", "all bytes", "zeros in text", "controls"],
)
def test_binary_data_is_refused(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(BinaryFile, match=r"a\.txt is not text"):
        read_one(write(tmp_path, "a.txt", content))


@pytest.mark.parametrize("seed", range(5))
def test_random_bytes_are_refused(tmp_path: Path, seed: int) -> None:
    with pytest.raises(BinaryFile):
        read_one(write(tmp_path, "a.txt", os.urandom(3000)))


def test_limits_are_kept_and_named(tmp_path: Path) -> None:
    path = write(tmp_path, "a.txt", "word " * 1000)
    with pytest.raises(FileTooLarge, match=r"a\.txt has 0\.0 MB.*max_file_mb"):
        read_one(path, max_file_mb=0.004)
    with pytest.raises(FileTooLarge, match="more than 4,999 characters"):
        read_one(path, max_characters=4999)
    assert len(read_one(path, max_characters=5000).text) == 4999


@pytest.mark.parametrize("value", [0, -1, "many", True, float("nan")])
def test_a_limit_that_is_no_positive_number_is_refused(tmp_path: Path, value: object) -> None:
    with pytest.raises(UsageError, match="max_file_mb"):
        read_one(write(tmp_path, "a.txt", "word"), max_file_mb=value)


def test_paragraphs_are_cut_at_blank_lines(tmp_path: Path) -> None:
    document = read_one(write(tmp_path, "a.txt", "One\r\ntwo\r\n \r\n\r\n  Three\rfour\n\n"))
    assert document.text == "One\ntwo\n \n\n  Three\nfour"
    assert blocks_of(document) == [("paragraph", "One\ntwo"), ("paragraph", "Three\nfour")]


def test_control_characters_and_colours_are_removed(tmp_path: Path) -> None:
    document = read_one(write(tmp_path, "a.log", "\x1b[31mERROR\x1b[0m disk\x07 full\x0cnext re\u00adtry " + "x" * 300))
    assert document.text.startswith("ERROR disk full\nnext retry x")


def test_code_is_cut_where_definitions_begin(tmp_path: Path) -> None:
    code = "import os\n\n\ndef one():\n    a = 1\n\n    return a\n\n\n@x\nclass Two:\n    pass\n"
    document = read_one(write(tmp_path, "a.py", code))
    assert document.media_type == "text/x-python"
    assert blocks_of(document) == [
        ("code", "import os"),
        ("code", "def one():\n    a = 1\n\n    return a"),
        ("code", "@x\nclass Two:\n    pass"),
    ]


def test_indentation_at_the_start_of_code_is_kept(tmp_path: Path) -> None:
    assert read_one(write(tmp_path, "a.sql", "\n  select 1\n  from t\n")).text.endswith("  select 1\n  from t")


@given(st.text(max_size=300))
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_text_comes_back_as_itself(tmp_path: Path, text: str) -> None:
    path = write(tmp_path, "a.txt", text.encode("utf-8"))
    cleaned = clean(text).rstrip()
    try:
        (document,) = read_file(str(path), {"encoding": "utf-8"})
    except (EmptyFile, BinaryFile):
        assert not cleaned or any(ord(character) < 32 or character == "\x7f" for character in text)
        return
    assert_sound(document)
    assert document.text == cleaned


@given(st.binary(max_size=400))
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_bytes_give_a_sound_document_or_a_clear_error(tmp_path: Path, data: bytes) -> None:
    path = write(tmp_path, "a.txt", data)
    refused: ReadError | None = None
    try:
        for document in read_file(str(path), {}):
            assert_sound(document)
    except ReadError as error:
        refused = error
    assert refused is None or ("a.txt" in refused.message and refused.remedy)
