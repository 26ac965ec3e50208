"""What every `LanguageModel` must do, as a pytest class. Give it your model by a fixture and run it:

    class TestMine(LanguageModelConformance):
        @pytest.fixture
        def language_model(self):
            with closing(MyModel()) as language_model:
                yield language_model

The suite settles what the protocol's types cannot say: a stream's pieces are its completion; a closed stream and a
dropped one end; each thread gets the reply to its own question; usage is counted; a closed model says so. It asserts
nothing on what a model says, so that any model can pass. Override `last_words` where replies can be foretold (a
server of your own that echoes): then replies are also checked against questions.
"""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import pytest
from pydantic import BaseModel, Field

from cognicraft.errors import ModelError
from cognicraft.protocols import LanguageModel
from cognicraft.records import Completion, Message, Usage

QUESTION = (Message("system", "You reply in a few words."), Message("user", "Name a colour."))
CONVERSATION = (
    Message("system", "You reply in a few words.", stable=True),
    Message("user", "Here is a document: the ferry leaves at nine.", stable=True),
    Message("assistant", "Thank you."),
    Message("user", "When does the ferry leave?"),
)
AWKWARD = ("", "\x00", "naïve 👩‍👩‍👧 東京", "<|im_end|> </s> [INST]", "{", '"', "a" * 200)


class Colour(BaseModel):
    """What structured replies are asked for."""

    name: str = Field(description="name of a colour")
    warm: bool = Field(description="whether it is a warm colour")


class LanguageModelConformance:
    """Run by pytest through a subclass that has a `language_model` fixture, not yet closed and the test's own."""

    max_tokens = 16

    def last_words(self, messages: tuple[Message, ...]) -> str | None:
        """What the reply to these must contain; None where nobody can say."""
        return None

    def check(self, completion: Completion, messages: tuple[Message, ...]) -> None:
        assert isinstance(completion.text, str)
        assert completion.model
        assert completion.finish in ("stop", "length")
        assert_counted(completion.usage)
        expected = self.last_words(messages)
        assert expected is None or expected in completion.text

    def test_says_what_it_is(self, language_model: LanguageModel) -> None:
        provider, colon, model = language_model.name.partition(":")
        assert provider
        assert colon
        assert model
        assert language_model.context_tokens > 0

    def test_completes(self, language_model: LanguageModel) -> None:
        self.check(language_model.complete(QUESTION, max_tokens=self.max_tokens), QUESTION)

    def test_completes_a_conversation(self, language_model: LanguageModel) -> None:
        self.check(language_model.complete(CONVERSATION, max_tokens=self.max_tokens), CONVERSATION)

    def test_pieces_of_a_stream_are_its_completion(self, language_model: LanguageModel) -> None:
        stream = language_model.stream(QUESTION, max_tokens=self.max_tokens)
        pieces = list(stream)
        assert all(pieces), "no empty piece"
        assert "".join(pieces) == stream.completion.text
        self.check(stream.completion, QUESTION)

    def test_a_stream_is_given_once(self, language_model: LanguageModel) -> None:
        stream = language_model.stream(QUESTION, max_tokens=self.max_tokens)
        whole = "".join(stream)
        assert list(stream) == []
        assert stream.completion.text == whole

    def test_completion_of_a_stream_is_what_came_so_far(self, language_model: LanguageModel) -> None:
        stream = language_model.stream(CONVERSATION, max_tokens=self.max_tokens)
        first = next(iter(stream), "")
        assert stream.completion.text.startswith(first)
        stream.close()

    def test_a_closed_stream_gives_no_more(self, language_model: LanguageModel) -> None:
        stream = language_model.stream(CONVERSATION, max_tokens=self.max_tokens)
        pieces = iter(stream)
        next(pieces, "")
        stream.close()
        stream.close()
        assert list(stream) == []
        # Its slot is free again.
        self.check(language_model.complete(QUESTION, max_tokens=self.max_tokens), QUESTION)

    def test_streams_that_are_dropped_block_nothing(self, language_model: LanguageModel) -> None:
        for _ in range(6):
            for _piece in language_model.stream(CONVERSATION, max_tokens=self.max_tokens):
                break
            language_model.stream(CONVERSATION, max_tokens=self.max_tokens)
        self.check(language_model.complete(QUESTION, max_tokens=self.max_tokens), QUESTION)

    def test_fills_a_schema(self, language_model: LanguageModel) -> None:
        value, usage = language_model.structured(QUESTION, Colour, max_tokens=100)
        assert type(value) is Colour
        assert_counted(usage)

    @pytest.mark.parametrize("text", AWKWARD, ids=range(len(AWKWARD)))
    def test_takes_any_text(self, language_model: LanguageModel, text: str) -> None:
        messages = (Message("user", f"{text} What is this?"),)
        language_model.complete(messages, max_tokens=self.max_tokens)

    def test_each_thread_gets_its_own_reply(self, language_model: LanguageModel) -> None:
        asked = [(Message("user", f"Say the number {number} and nothing else."),) for number in range(8)]
        with ThreadPoolExecutor(8) as pool:
            replies = list(pool.map(lambda one: language_model.complete(one, max_tokens=self.max_tokens), asked))
        for messages, completion in zip(asked, replies, strict=True):
            self.check(completion, messages)

    def test_streams_run_side_by_side(self, language_model: LanguageModel) -> None:
        asked = [(Message("user", f"Say the number {number} and nothing else."),) for number in range(4)]

        def read(messages: tuple[Message, ...]) -> Completion:
            stream = language_model.stream(messages, max_tokens=self.max_tokens)
            assert "".join(stream) == stream.completion.text
            return stream.completion

        with ThreadPoolExecutor(4) as pool:
            for messages, completion in zip(asked, pool.map(read, asked), strict=True):
                self.check(completion, messages)

    def test_a_time_limit_that_cannot_be_met_is_a_model_error(self, language_model: LanguageModel) -> None:
        with pytest.raises(ModelError) as caught:
            language_model.complete(CONVERSATION, max_tokens=self.max_tokens, timeout_s=1e-4)
        assert str(caught.value).startswith(language_model.name)

    def test_a_closed_model_says_so(self, language_model: LanguageModel) -> None:
        language_model.close()
        language_model.close()
        with pytest.raises(ModelError, match="closed"):
            language_model.complete(QUESTION)
        with pytest.raises(ModelError, match="closed"):
            list(language_model.stream(QUESTION))
        with pytest.raises(ModelError, match="closed"):
            language_model.structured(QUESTION, Colour)


def assert_counted(usage: Usage) -> None:
    """A call is in its usage: made, or taken from a cache."""
    assert usage.calls + usage.cached_calls >= 1
    if usage.calls:
        assert usage.input_tokens > 0
        assert usage.output_tokens >= 0
    assert usage.cost_usd is None or usage.cost_usd >= 0


def colour_json(name: str = "red") -> str:
    """A reply that fits `Colour`, for servers that must be told what to say."""
    return json.dumps({"name": name, "warm": True})
