"""Settings: precedence, refusal of what is unknown, and the origin of each value."""

from __future__ import annotations

from pathlib import Path

import pytest

from cognicraft.config import fields, resolve
from cognicraft.errors import SettingsError


def _origins(**kwargs: object) -> dict[str, tuple[str, str]]:
    return {key: (value, origin) for key, value, origin in resolve(**kwargs).rows()}  # type: ignore[arg-type]


def test_every_setting_has_a_default(home: Path) -> None:
    rows = _origins(environment={})
    assert set(rows) == set(fields())
    assert {origin for _, origin in rows.values()} == {"default"}


def test_an_argument_beats_the_environment_beats_the_file_beats_the_default(home: Path) -> None:
    Path("cognicraft.toml").write_text("[search]\ndepth = 11\nlimit = 12\nfusion = 'rrf'\n")
    rows = _origins(
        arguments={"search.depth": 33},
        environment={"COGNICRAFT_SEARCH_DEPTH": "22", "COGNICRAFT_SEARCH_LIMIT": "23"},
    )
    assert rows["search.depth"] == ("33", "argument")
    assert rows["search.limit"] == ("23", "COGNICRAFT_SEARCH_LIMIT")
    assert rows["search.fusion"] == ("rrf", "cognicraft.toml")
    assert rows["search.rerank"] == ("late-interaction", "default")


def test_an_argument_of_none_is_not_given(home: Path) -> None:
    assert _origins(arguments={"search.depth": None}, environment={})["search.depth"][1] == "default"


@pytest.mark.parametrize(
    ("text", "key", "near"),
    [
        ("[search]\nfusoin = 'rrf'\n", "search.fusoin", "search.fusion"),
        ("[serach]\nfusion = 'rrf'\n", "serach.fusion", "search.fusion"),
        ("hoem = 'x'\n", "hoem", "home"),
    ],
)
def test_an_unknown_key_in_the_file_is_refused_with_the_nearest_name(
    home: Path, text: str, key: str, near: str
) -> None:
    Path("cognicraft.toml").write_text(text)
    with pytest.raises(SettingsError) as caught:
        resolve(environment={})
    assert key in caught.value.message
    assert near in caught.value.remedy
    assert "cognicraft.toml" in caught.value.message


def test_an_unknown_variable_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(SettingsError) as caught:
        resolve(environment={"COGNICRAFT_SEARCH_FUSON": "rrf"})
    assert "COGNICRAFT_SEARCH_FUSION" in caught.value.remedy


def test_variables_of_others_are_left_alone(home: Path) -> None:
    resolve(environment={"PATH": "/bin", "COGNICRAFT_TEST_QDRANT_URL": "http://127.0.0.1", "COGNICRAFT_CACHE": "x"})


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("search.depth", 0),
        ("search.fusion", "best"),
        ("ingest.encoders", ()),
        ("answer.threshold", 1.5),
        ("workspace", "../escape"),
        ("workspace", ""),
    ],
)
def test_a_value_out_of_bounds_is_refused_by_name(home: Path, key: str, value: object) -> None:
    with pytest.raises(SettingsError) as caught:
        resolve({key: value}, environment={})
    assert key in caught.value.message
    assert caught.value.exit_code == 2


def test_lists_tables_and_none_are_read_from_the_environment(home: Path) -> None:
    settings = resolve(
        environment={
            "COGNICRAFT_INGEST_ENCODERS": "minilm, multilingual-e5",
            "COGNICRAFT_SEARCH_WEIGHTS": "dense=2,lexical=0.5",
            "COGNICRAFT_ANSWER_THRESHOLD": "none",
        }
    ).settings
    assert settings.ingest.encoders == ("minilm", "multilingual-e5")
    assert settings.search.weights == {"dense": 2.0, "lexical": 0.5}
    assert settings.answer.threshold is None


def test_a_settings_file_that_is_named_must_exist(home: Path) -> None:
    with pytest.raises(SettingsError, match=r"nowhere\.toml does not exist"):
        resolve(environment={}, config_file="nowhere.toml")


def test_a_broken_settings_file_is_named(home: Path) -> None:
    Path("cognicraft.toml").write_text("[search\n")
    with pytest.raises(SettingsError, match=r"cognicraft\.toml cannot be read"):
        resolve(environment={})


def test_a_file_in_the_home_is_found(home: Path) -> None:
    home.mkdir()
    (home / "cognicraft.toml").write_text("[search]\ndepth = 7\n")
    assert resolve(environment={"COGNICRAFT_HOME": str(home)}).settings.search.depth == 7


def test_settings_are_frozen(home: Path) -> None:
    settings = resolve(environment={}).settings
    with pytest.raises(ValueError, match="frozen"):
        settings.search.depth = 3  # type: ignore[misc]
