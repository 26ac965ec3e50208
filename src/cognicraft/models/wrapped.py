"""What a language model says of itself, passed on by what is wrapped round it (`cached.py`, `meter.py`)."""

from __future__ import annotations

from cognicraft.protocols import LanguageModel


class WrappedModel:
    """The part of `LanguageModel` that a wrapper leaves as it is. Closing it closes the model."""

    def __init__(self, model: LanguageModel) -> None:
        self._model = model

    @property
    def name(self) -> str:
        return self._model.name

    @property
    def context_tokens(self) -> int:
        return self._model.context_tokens

    @property
    def price_known(self) -> bool:
        return bool(getattr(self._model, "price_known", True))

    @property
    def temperature(self) -> float | None:
        return getattr(self._model, "temperature", None)

    @property
    def max_output_tokens(self) -> int | None:
        return getattr(self._model, "max_output_tokens", None)

    def close(self) -> None:
        self._model.close()
