"""`cognicraft ask`: a question, and what the documents say to it."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import typer

from cognicraft.cli.options import (
    Arms,
    ConfigFile,
    Depth,
    Fusion,
    Home,
    Hyde,
    Json,
    Model,
    Plan,
    Rerank,
    RerankModel,
    Route,
    Set,
    Weights,
    Where,
    WorkspaceName,
)

if TYPE_CHECKING:
    from cognicraft.results import Answer, AskEvent
    from cognicraft.workspace import Workspace


def ask(
    question: Annotated[str, typer.Argument(metavar="QUESTION", help="The question, in quotes.")],
    workspace: WorkspaceName = None,
    home: Home = None,
    config_file: ConfigFile = None,
    as_json: Json = False,
    model: Model = None,
    arm: Arms = None,
    fusion: Fusion = None,
    weight: Weights = None,
    rerank: Rerank = None,
    rerank_model: RerankModel = None,
    depth: Depth = None,
    where: Where = None,
    route: Route = None,
    plan: Plan = None,
    hyde: Hyde = None,
    sentences: Annotated[
        int | None, typer.Option("--sentences", metavar="N", help="Sentences quoted at most, without a model.")
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option("--threshold", metavar="0..1", help="Confidence below which nothing is quoted."),
    ] = None,
    max_tokens: Annotated[
        int | None, typer.Option("--max-tokens", metavar="N", help="Tokens of evidence that a model is given.")
    ] = None,
    top_k: Annotated[
        int | None, typer.Option("--top-k", metavar="N", help="Passages that a model is given at most.")
    ] = None,
    prompt: Annotated[
        str | None,
        typer.Option("--prompt", metavar="NAME|FILE", help="assistant, translation, scientific, legal, or a file."),
    ] = None,
    persona: Annotated[str | None, typer.Option("--persona", metavar="TEXT", help="Who the model answers as.")] = None,
    style: Annotated[str | None, typer.Option("--style", metavar="TEXT", help="How the model answers.")] = None,
    language: Annotated[
        str | None, typer.Option("--language", metavar="NAME", help="Language of the answer (default: the question's).")
    ] = None,
    verify: Annotated[
        bool | None,
        typer.Option("--verify/--no-verify", help="Check what a model writes against the evidence (default: yes)."),
    ] = None,
    strict: Annotated[
        bool | None, typer.Option("--strict", help="Strike sentences that did not stand the check.")
    ] = None,
    stream: Annotated[
        bool | None,
        typer.Option("--stream/--no-stream", help="Print the answer while it is written (default: in a terminal)."),
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show what the question was taken to mean, and the time by step.")
    ] = False,
    changed: Set = None,
) -> None:
    """Answer a question from the documents, with file, page and quote.

    With a language model (`--model`) it writes from the evidence alone and cites each sentence; without one the
    sentences that answer are quoted word for word. Where nothing fits the answer says so (exit code 0).
    """
    from cognicraft.cli.options import parse_settings, parse_weights
    from cognicraft.cli.options import workspace as open_workspace
    from cognicraft.cli.output import print_json

    settings: dict[str, object] = {
        "model.answer": model,
        "search.rerank_model": rerank_model,
        "search.route": route,
        "search.plan": plan,
        "search.hyde": hyde,
        "answer.max_sentences": sentences,
        "answer.threshold": threshold,
        "answer.max_tokens": max_tokens,
        "answer.top_k": top_k,
        "answer.prompt": prompt,
        "answer.persona": persona,
        "answer.style": style,
        "answer.language": language,
        "answer.verify": verify,
        "answer.strict": strict,
    }
    stream = sys.stdout.isatty() if stream is None else stream
    given = {**parse_settings(changed), **{key: value for key, value in settings.items() if value is not None}}
    with open_workspace(workspace, home, config_file) as opened:
        events = opened.ask_stream(
            question,
            arms=arm,
            fusion=fusion,
            weights=parse_weights(weight),
            rerank=rerank,
            depth=depth,
            where=where,
            settings=given,
        )
        answer = print_events(events, stream=stream and not as_json, quiet=as_json)
        note = "" if "model.answer" in given else first_note(opened)
    if as_json:
        print_json(answer)
        return
    print_sources(answer)
    print_checked(answer)
    if explain:
        print_explained(answer)
    if note:
        print(f"note: {note}", file=sys.stderr)


def first_note(opened: Workspace) -> str:
    """Which model answers where the person chose none: said each time one was found, else once in a home."""
    model, note = opened.answering()
    if not note or model:
        return note
    told = opened.settings.home_folder / "no-model-told"
    if told.exists():
        return ""
    with contextlib.suppress(OSError):  # a home that cannot be written to is told again
        told.touch()
    return note


def print_events(events: Iterable[AskEvent], *, stream: bool, quiet: bool = False) -> Answer:
    """Print an answer while it comes (`stream`), whole at its end, or not at all (`quiet`); returns it."""
    from cognicraft.results import AnswerEvent, TokenEvent

    pieces: list[str] = []
    for event in events:
        if isinstance(event, TokenEvent) and stream:
            print(event.text, end="", flush=True)
            pieces.append(event.text)
        elif isinstance(event, AnswerEvent):
            # What broke off, or was corrected, is replaced.
            whole = "".join(pieces) != event.answer.answer
            if pieces:
                print("\n" if whole else "")
            if whole and not quiet:
                print(event.answer.answer)
            return event.answer
    raise AssertionError("the events of a question end with an answer")


def print_checked(answer: Answer) -> None:
    """What the check said of each statement, and what was corrected; nothing where nothing was checked."""
    from cognicraft.cli.verify import print_claims

    if answer.confidence is None:
        return
    print("\nChecked")
    print_claims(answer.claims, confidence=answer.confidence)
    for one in answer.corrections:
        print(f"correction {one.round}: {one.action}. {one.reason}{' ' + one.error if one.error else ''}")


def print_sources(answer: Answer) -> None:
    from cognicraft.cli.output import place, print_warnings

    if answer.sources:
        print("\nSources" if answer.answered else "\nNearest passages, which do not answer it")
    for source in answer.sources:
        print(f"[{source.n}] {place(source.file, source.page, source.page_end, source.heading)}")
        if not answer.answered:
            text = " ".join(source.quote.split())
            print(f"    {text[:160]}{'...' if len(text) > 160 else ''}")
    print_warnings(answer.warnings)


def print_explained(answer: Answer) -> None:
    """What the question was taken to mean, what models took, and the time by step."""
    from cognicraft.cli.search import print_understood

    print_understood(answer.understood)
    usage = answer.usage
    if usage.calls or usage.cached_calls:
        cost = "cost not known" if usage.cost_usd is None else f"{usage.cost_usd:.4f} USD"
        print(
            f"model: {answer.model or 'none'}; {usage.calls} calls, {usage.cached_calls} from the cache, "
            f"{usage.input_tokens} tokens in, {usage.output_tokens} out, {cost}"
        )
    print("milliseconds: " + ", ".join(f"{name} {value:.1f}" for name, value in answer.timings_ms.items()))
