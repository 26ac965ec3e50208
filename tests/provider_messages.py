"""What a stand-in for a provider is asked and what it does: `Request` and `Reply`, whichever protocol is spoken."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Protocol = Literal["openai", "gemini", "anthropic"]


@dataclass(frozen=True)
class Reply:
    """What the stand-in does with one request. Left alone: 200 with `text`, whole or streamed as was asked.

    json: the raw body instead of a protocol reply (any path); with `events` it is sent as the one event of a stream.
    break_after: characters sent, then the connection is
    cut. hang_s: silence before the reply, or after `hang_after` streamed characters. pace_s: pause between pieces.
    malformed: a body that is not JSON. refusal: the provider's refusal. overflow: the provider's error for a prompt
    that is too long. finish: "length" for a reply cut at its limit, "content_filter" for one stopped by a filter.
    failing_after: characters streamed, then the protocol's error inside the stream. ends_after: characters streamed,
    then the connection ends as if all had been sent, without the protocol's last events.
    """

    text: str = ""
    status: int = 200
    json: Any = None
    events: bool = False
    headers: Mapping[str, str] = field(default_factory=dict)
    message: str = ""
    break_after: int | None = None
    hang_s: float = 0.0
    hang_after: int | None = None
    pace_s: float = 0.0
    malformed: bool = False
    refusal: bool = False
    overflow: bool = False
    finish: str = "stop"
    failing_after: int | None = None
    ends_after: int | None = None
    cached_tokens: int = 0


@dataclass(frozen=True)
class Request:
    """One request as it came. schema: the JSON schema asked for, by whichever way; None for plain text."""

    protocol: Protocol
    method: str
    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]

    @property
    def key(self) -> str:
        """The API key it was sent with, "" for none."""
        bearer = self.headers.get("authorization", "").removeprefix("Bearer ").strip()
        names = ("x-goog-api-key", "x-api-key", "api-key")
        return next((self.headers[name] for name in names if name in self.headers), bearer)

    @property
    def model(self) -> str:
        if self.protocol == "gemini":
            return self.path.split("/models/")[-1].split(":")[0].split("?")[0]
        return str(self.body.get("model", ""))

    @property
    def stream(self) -> bool:
        return ":streamGenerateContent" in self.path or bool(self.body.get("stream"))

    @property
    def max_tokens(self) -> int | None:
        generation = self.body.get("generationConfig", {})
        names = ("max_completion_tokens", "max_tokens", "maxOutputTokens")
        return next((source[name] for source in (self.body, generation) for name in names if name in source), None)

    @property
    def temperature(self) -> float | None:
        value: float | None = self.body.get("temperature", self.body.get("generationConfig", {}).get("temperature"))
        return value

    @property
    def messages(self) -> list[tuple[str, str]]:
        """(role, text) in order, system first; Gemini's "model" is "assistant"."""
        found = []
        if self.protocol == "openai":
            turns = self.body.get("messages", [])
        elif self.protocol == "anthropic":
            turns = self.body.get("messages", [])
            found = [("system", _text(self.body["system"]))] if self.body.get("system") else []
        else:
            turns = [{"role": turn.get("role"), "content": turn.get("parts")} for turn in self.body.get("contents", [])]
            system = self.body.get("systemInstruction")
            found = [("system", _text(system["parts"]))] if system else []
        roles = {"model": "assistant", "developer": "system"}
        return found + [(roles.get(turn["role"], turn["role"]), _text(turn.get("content"))) for turn in turns]

    @property
    def text(self) -> str:
        """Every message, joined."""
        return "\n".join(text for _, text in self.messages)

    @property
    def schema(self) -> dict[str, Any] | None:
        body = self.body
        if self.protocol == "gemini":
            generation = body.get("generationConfig", {})
            found = generation.get("responseJsonSchema") or generation.get("responseSchema")
            tools = [t for group in body.get("tools", []) for t in group.get("functionDeclarations", [])]
            return found or next((t.get("parametersJsonSchema") or t.get("parameters") for t in tools), None)
        if self.protocol == "anthropic":
            form = body.get("output_format") or body.get("output_config", {}).get("format")
            tool = next((t.get("input_schema") for t in body.get("tools", [])), None)
            return form["schema"] if form else tool
        form = body.get("response_format", {})
        tool = next((t["function"].get("parameters") for t in body.get("tools", [])), None)
        return form["json_schema"]["schema"] if form.get("type") == "json_schema" else tool

    @property
    def tool(self) -> str:
        """Name of the tool that the request brings, "" for none."""
        if self.protocol == "gemini":
            groups = self.body.get("tools", [])
            return next((t["name"] for group in groups for t in group.get("functionDeclarations", [])), "")
        tools = self.body.get("tools", [])
        return next((t.get("name") or t["function"]["name"] for t in tools), "")


def tokens_of(text: str) -> int:
    """How this stand-in counts tokens."""
    return len(text) // 4 + 1


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(part["text"] for part in content or [] if "text" in part)
