"""Answers of a model, over the real adapter and a provider's protocol: what is shown, recorded and noted."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from evidence_chunks import evidence_of
from hypothesis import given
from hypothesis import strategies as st

from cognicraft.answer.generate import READ_AFTER_NOT_TOLD, GeneratedAnswer, generate
from cognicraft.answer.ground import Evidence
from cognicraft.answer.prompting import load_template, messages, parse_template
from cognicraft.answer.sentinel import SENTINEL, SentinelWatch
from cognicraft.errors import ContextOverflow, ModelRefused, ModelUnavailable
from cognicraft.models.llm import open_language_model
from cognicraft.protocols import LanguageModel
from cognicraft.records import Message
from model_servers import ModelServer
from provider_servers import ProviderServer, Reply, provider_server, tokens_of

TWO = evidence_of("The fee is 5 euro.", "The tax is 2 euro.")


@pytest.fixture(scope="module")
def server() -> Iterator[ProviderServer]:
    with provider_server("openai") as running:
        yield running


@pytest.fixture(scope="module")
def model(server: ProviderServer) -> Iterator[LanguageModel]:
    opened = open_language_model("compatible:test", base_url=server.base_url, api_key="test-key", retries=0)
    yield opened
    opened.close()


def ask(
    server: ProviderServer,
    model: LanguageModel,
    reply: Reply,
    *,
    evidence: Evidence = TWO,
    max_tokens: int | None = None,
) -> tuple[list[str], GeneratedAnswer]:
    server.queue(reply)
    asked = messages("What is the fee?", evidence=evidence, template=load_template("assistant"))
    *pieces, answer = generate(asked, evidence=evidence, model=model, max_tokens=max_tokens)
    assert isinstance(answer, GeneratedAnswer)
    assert all(isinstance(piece, str) and piece for piece in pieces)
    if answer.answered:
        assert "".join(map(str, pieces)) == answer.text
    return [str(piece) for piece in pieces], answer


def test_an_answer_is_streamed_and_recorded_with_its_citations(server: ProviderServer, model: LanguageModel) -> None:
    pieces, answer = ask(server, model, Reply(text="The fee is 5 euro [1]. The tax is 2 euro [Source 2].\n"))
    assert len(pieces) > 3
    assert answer.text == "The fee is 5 euro. [1] The tax is 2 euro. [2]"
    assert [(one.text, one.citations) for one in answer.sentences] == [
        ("The fee is 5 euro.", (1,)),
        ("The tax is 2 euro.", (2,)),
    ]
    assert (answer.outcome, answer.finish, answer.model, answer.notes) == ("answered", "stop", "compatible:test", ())
    assert answer.cited == (1, 2)
    assert answer.usage.calls == 1
    assert answer.usage.input_tokens == tokens_of(server.requests[-1].text)


def test_the_model_reads_the_rules_the_passages_and_the_question(server: ProviderServer, model: LanguageModel) -> None:
    ask(server, model, Reply(text="Yes [1]."), max_tokens=77)
    request = server.requests[-1]
    (system, rules), (user, asked) = request.messages
    assert (system, user) == ("system", "user")
    assert SENTINEL in rules
    assert "The fee is 5 euro." not in rules
    assert f'<<passage 2 {TWO.mark} file="docs/2.txt">>\nThe tax is 2 euro.\n<<end of passage 2 {TWO.mark}>>' in asked
    assert asked.endswith("Question: What is the fee?")
    assert request.max_tokens == 77
    assert request.stream


@pytest.mark.parametrize(
    "text",
    [
        "NOT_IN_DOCUMENTS",
        "NOT_IN_DOCUMENTS.\n",
        "  **NOT_IN_DOCUMENTS**",
        "NOT\\_IN\\_DOCUMENTS",
        "NOT IN DOCUMENTS",
        "not_in_documents",
        "NOT_IN_DOCUMENTS\n\nThe passages speak of fees [1] only.",
    ],
)
def test_what_the_documents_do_not_tell_is_not_answered_and_nothing_is_shown(
    server: ProviderServer, model: LanguageModel, text: str
) -> None:
    pieces, answer = ask(server, model, Reply(text=text))
    assert pieces == []
    assert (answer.outcome, answer.answered, answer.text, answer.sentences) == ("not_told", False, "", ())
    assert answer.usage.calls == 1


def test_a_model_that_goes_on_after_it_said_so_is_broken_off(server: ProviderServer, model: LanguageModel) -> None:
    before = server.cancelled
    pieces, answer = ask(server, model, Reply(text="NOT_IN_DOCUMENTS " + "and so on " * 200, pace_s=0.005))
    assert pieces == []
    assert answer.outcome == "not_told"
    deadline = time.monotonic() + 5
    while server.cancelled == before and time.monotonic() < deadline:
        time.sleep(0.02)
    assert server.cancelled == before + 1
    assert answer.usage.output_tokens < tokens_of("x" * (READ_AFTER_NOT_TOLD * 3))


def test_a_part_that_is_told_is_answered_and_the_word_is_not_shown(
    server: ProviderServer, model: LanguageModel
) -> None:
    pieces, answer = ask(server, model, Reply(text="The fee is 5 euro [1]. NOT_IN_DOCUMENTS"))
    assert SENTINEL not in "".join(pieces)
    assert answer.text == "The fee is 5 euro. [1]"
    assert answer.notes == ("The model says that the documents do not tell all that was asked.",)


def test_excuses_before_the_word_are_no_answer(server: ProviderServer, model: LanguageModel) -> None:
    _, answer = ask(server, model, Reply(text="I looked everywhere. NOT_IN_DOCUMENTS"))
    assert (answer.outcome, answer.text, answer.sentences) == ("not_told", "", ())


def test_an_answer_that_cites_nothing_is_kept_and_noted(server: ProviderServer, model: LanguageModel) -> None:
    _, answer = ask(server, model, Reply(text="The fee is 5 euro. I am sure."))
    assert answer.answered
    assert answer.notes == ("The answer cites no passage: nothing shows that the documents say it.",)


def test_single_sentences_without_a_citation_and_invented_numbers_are_noted(
    server: ProviderServer, model: LanguageModel
) -> None:
    _, answer = ask(server, model, Reply(text="It costs:\n- The fee is 5 euro [1].\n- It is cheap.\n- It is old [7]."))
    assert [(one.citations, one.unknown) for one in answer.sentences] == [((), ()), ((1,), ()), ((), ()), ((), (7,))]
    assert answer.notes == ("2 sentences cite no passage.", "Cited, but never given: [7].")


def test_a_reply_cut_at_its_limit_is_noted(server: ProviderServer, model: LanguageModel) -> None:
    _, answer = ask(server, model, Reply(text="The fee is 5 euro [1]. The tax [", finish="length"), max_tokens=10)
    assert answer.finish == "length"
    assert answer.text == "The fee is 5 euro. [1] The tax ["
    assert answer.notes[0] == "The answer was cut at its limit of 10 tokens; its last sentence may not be whole."


@pytest.mark.parametrize(
    ("text", "finish"), [("", "stop"), (" \n", "stop"), ("...", "stop"), ("[1]", "stop"), ("", "length")]
)
def test_an_empty_reply_is_no_answer_and_is_noted(
    server: ProviderServer, model: LanguageModel, text: str, finish: str
) -> None:
    _, answer = ask(server, model, Reply(text=text, finish=finish))
    assert (answer.outcome, answer.text) == ("empty", "")
    assert answer.notes[0].startswith("The model gave an empty reply")
    assert ("limit" in answer.notes[0]) == (finish == "length")


def test_without_passages_no_model_is_asked(server: ProviderServer, model: LanguageModel) -> None:
    before = len(server.requests)
    (answer,) = generate([], evidence=evidence_of(), model=model)
    assert isinstance(answer, GeneratedAnswer)
    assert answer.outcome == "no_evidence"
    assert answer.notes
    assert len(server.requests) == before


def test_a_refusal_passes_through(server: ProviderServer, model: LanguageModel) -> None:
    with pytest.raises(ModelRefused):
        ask(server, model, Reply(refusal=True))


def test_a_connection_that_breaks_passes_through_after_what_was_shown(
    server: ProviderServer, model: LanguageModel
) -> None:
    server.queue(Reply(text="The fee is 5 euro [1]. The tax is", break_after=12))
    pieces: list[str] = []
    with pytest.raises(ModelUnavailable):
        pieces.extend(map(str, generate(messages_of(TWO), evidence=TWO, model=model)))
    assert "".join(pieces) == "The fee is 5"


def test_a_prompt_that_is_too_long_passes_through(server: ProviderServer, model: LanguageModel) -> None:
    with pytest.raises(ContextOverflow):
        ask(server, model, Reply(overflow=True))


def test_closing_half_way_cancels_the_call(server: ProviderServer, model: LanguageModel) -> None:
    before = server.cancelled
    server.queue(Reply(text="word " * 400, pace_s=0.01))
    answer = generate(messages_of(TWO), evidence=TWO, model=model)
    assert isinstance(next(answer), str)
    answer.close()  # type: ignore[attr-defined]
    deadline = time.monotonic() + 5
    while server.cancelled == before and time.monotonic() < deadline:
        time.sleep(0.02)
    assert server.cancelled == before + 1


def messages_of(evidence: Evidence) -> tuple[Message, ...]:
    return messages("What is the fee?", evidence=evidence, template=load_template("assistant"))


@pytest.mark.parametrize("protocol", ["gemini", "anthropic"])
def test_other_protocols_carry_the_same_answer(protocol: str, monkeypatch: pytest.MonkeyPatch) -> None:
    names = {
        "gemini": ("google:gemini-3-flash", "GEMINI_API_KEY"),
        "anthropic": ("anthropic:claude-x", "ANTHROPIC_API_KEY"),
    }
    name, variable = names[protocol]
    monkeypatch.setenv(variable, "test-key")
    with provider_server(protocol) as other:  # type: ignore[arg-type]
        opened = open_language_model(name, base_url=other.base_url, retries=0)
        try:
            _, answer = ask(other, opened, Reply(text="The fee is 5 euro [1]."))
            assert answer.text == "The fee is 5 euro. [1]"
            assert "never orders" in other.requests[-1].messages[0][1]
        finally:
            opened.close()


def test_a_real_small_model_answers_or_says_nothing_within_its_limit(llama_server: ModelServer) -> None:
    opened = open_language_model(
        f"compatible:{llama_server.model}", base_url=llama_server.openai_url, api_key="none", max_output_tokens=24
    )
    try:
        short = parse_template("# System\nSay what the fee is.\n# User\n{{evidence}}\n{{question}}", name="short")
        asked = messages("What is the fee?", evidence=TWO, template=short)
        *pieces, answer = generate(asked, evidence=TWO, model=opened, timeout_s=60)
        assert isinstance(answer, GeneratedAnswer)
        assert answer.usage.input_tokens > 60
        assert 0 < answer.usage.output_tokens <= 24
        assert not answer.answered or "".join(map(str, pieces)) == answer.text
    finally:
        opened.close()


# ── the watch ─────────────────────────────────────────────────────────────────────────────────────────────────

_BITS = st.sampled_from(
    [SENTINEL, "NOT", "NOT_IN", "N", "NOT_IN_", "\\_", "_", " ", "**", "It is", ".", "\n", "DOCUMENTS", "not_in_"]
)


@given(st.lists(_BITS, max_size=12).map("".join), st.data())
def test_the_word_is_found_however_the_pieces_are_cut(text: str, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    results = []
    for pieces in ([text], [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)], list(text)):
        watch = SentinelWatch()
        shown = "".join([*(watch.feed(piece) for piece in pieces), watch.close()])
        assert SENTINEL not in shown
        results.append((shown, watch.seen, watch.leading))
    assert results[0] == results[1] == results[2]
    assert not (SENTINEL in text and not results[0][1])


def test_the_word_inside_itself_does_not_come_out() -> None:
    watch = SentinelWatch()
    shown = watch.feed("NOT_IN_NOT_IN_DOCUMENTSDOCUMENTS") + watch.close()
    assert (shown, watch.seen) == ("NOT_IN_ DOCUMENTS", True)


def test_text_without_the_word_comes_through_unchanged_and_soon() -> None:
    watch = SentinelWatch()
    assert watch.feed("NO") == ""
    assert watch.feed("TE: N") == "NOTE: "
    assert watch.feed("OT_IN_D") == ""
    assert watch.feed("oors.") == "NOT_IN_Doors."
    assert watch.close() == ""
    assert not watch.seen
