"""The options that the readers share, out of the plain mapping that crosses to the worker process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cognicraft.errors import UsageError


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """What a person may choose about reading.

    max_file_mb: files over this many million bytes are refused, unread. Also the limit for what an archive unpacks to,
        times ten.
    max_characters: of text in one document.
    encoding: of text files, instead of finding it out.
    json_text, json_metadata: field names, or JSON pointers with `*` for any one step; empty for the default choice.
    json_title: the same for the one field that is the title.
    """

    max_file_mb: float = 100
    max_characters: int = 50_000_000
    encoding: str = ""
    json_text: tuple[str, ...] = ()
    json_metadata: tuple[str, ...] = ()
    json_title: str = ""

    @property
    def max_bytes(self) -> int:
        return int(self.max_file_mb * 1_000_000)


def parse_options(options: Mapping[str, object]) -> ReadOptions:
    """Take what is ours out of `options`; other keys belong to other readers.

    Raises: UsageError for a value of the wrong type or out of bounds.
    """
    default = ReadOptions()
    return ReadOptions(
        max_file_mb=_number(options, "max_file_mb", default.max_file_mb),
        max_characters=int(_number(options, "max_characters", default.max_characters)),
        encoding=_text(options, "encoding"),
        json_text=_names(options, "json_text"),
        json_metadata=_names(options, "json_metadata"),
        json_title=_text(options, "json_title"),
    )


def _number(options: Mapping[str, object], key: str, default: float) -> float:
    value = options.get(key)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        raise UsageError(f"The reading option {key} is {value!r}.", remedy="Give a number greater than 0.")
    return value


def _text(options: Mapping[str, object], key: str) -> str:
    value = options.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise UsageError(f"The reading option {key} is {value!r}.", remedy="Give a text.")
    return value


def _names(options: Mapping[str, object], key: str) -> tuple[str, ...]:
    value = options.get(key)
    if value is None:
        return ()
    if isinstance(value, str):
        value = (value,)
    if not isinstance(value, Sequence) or not all(isinstance(name, str) and name for name in value):
        raise UsageError(
            f"The reading option {key} is {value!r}.", remedy='Give field names or JSON pointers, as in ["title"].'
        )
    return tuple(value)
