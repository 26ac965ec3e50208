"""Errors carry what a person and a program need, and survive the way between processes."""

from __future__ import annotations

import inspect
import pickle

import pytest

from cognicraft import errors


def _all() -> list[type[errors.CogniCraftError]]:
    return [k for k in vars(errors).values() if inspect.isclass(k) and issubclass(k, errors.CogniCraftError)]


@pytest.mark.parametrize("kind", _all(), ids=lambda kind: kind.__name__)
def test_every_error_knows_its_code_exit_status_and_http_status(kind: type[errors.CogniCraftError]) -> None:
    assert kind.code
    assert 1 <= kind.exit_code <= 130
    assert 400 <= kind.http_status <= 599
    assert kind.__name__ in (errors.__doc__ or ""), "the tree in the module docstring shows every error"


def test_codes_are_told_apart() -> None:
    codes = [kind.code for kind in _all()]
    assert len(codes) == len(set(codes))


@pytest.mark.parametrize(
    "error",
    [
        errors.MissingExtra("chroma", extra="chroma"),
        errors.ModelFileError("a.onnx", reason="it is cut short", remedy="Install again."),
        errors.CorruptFile("a.pdf is damaged.", remedy="Get it again."),
    ],
)
def test_an_error_is_the_same_after_pickling(error: errors.CogniCraftError) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert (again.message, again.remedy, str(again)) == (error.message, error.remedy, str(error))


def test_the_remedy_of_a_missing_extra_is_the_line_that_installs_it() -> None:
    assert 'pip install "cognicraft[chroma]"' in errors.MissingExtra("chroma", extra="chroma").remedy
