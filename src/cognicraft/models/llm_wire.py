"""Our messages to a provider's protocol and back, by pydantic-ai. Loaded when the first model is opened.

Takes: a name, an address, a key; then messages. Returns: pydantic-ai's responses. Method: its models for the OpenAI
chat protocol, Gemini and Anthropic, with their own retries switched off (`llm.py` owns retrying). Cost: the import,
2 to 6 seconds with a provider's library. What can go wrong: the package is absent, which names the extra.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from pydantic import BaseModel

from cognicraft.errors import MissingExtra
from cognicraft.models.llm_names import ModelName
from cognicraft.records import Message

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage, ModelResponse
    from pydantic_ai.models import Model, ModelRequestParameters, StreamedResponse
    from pydantic_ai.settings import ModelSettings

CONNECT_TIMEOUT_S = 10.0


@dataclass(slots=True)
class Wire:
    """One model at one address.

    native_schema: whether the server keeps a reply to a JSON schema by itself. cache_points: whether it is told
    where a shared prefix ends. says_finish: whether its protocol ends every whole stream with a reason.
    """

    model: Model
    http: Any
    temperature: float
    native_schema: bool
    cache_points: bool
    says_finish: bool

    async def request(
        self, messages: Sequence[Message], *, max_tokens: int, timeout_s: float, schema: type[BaseModel] | None = None
    ) -> ModelResponse:
        from pydantic_ai.direct import model_request

        return await model_request(
            self.model,
            to_library(messages, cache_points=self.cache_points),
            model_settings=self._settings(messages, max_tokens, timeout_s),
            model_request_parameters=_parameters(schema),
        )

    def stream(
        self, messages: Sequence[Message], *, max_tokens: int, timeout_s: float
    ) -> AbstractAsyncContextManager[StreamedResponse]:
        from pydantic_ai.direct import model_request_stream

        return model_request_stream(
            self.model,
            to_library(messages, cache_points=self.cache_points),
            model_settings=self._settings(messages, max_tokens, timeout_s),
        )

    async def close(self) -> None:
        await self.http.aclose()

    def _settings(self, messages: Sequence[Message], max_tokens: int, timeout_s: float) -> ModelSettings:
        settings: dict[str, Any] = {
            "max_tokens": max_tokens,
            "temperature": self.temperature,
            # Seconds of silence that the transport allows; the deadline of the whole call is kept in `llm.py`.
            "timeout": timeout_s,
            "max_retries": 0,
            # Replies here are short and many: thinking that cannot be seen would take the tokens of the reply.
            "thinking": False,
        }
        if self.cache_points and any(message.stable and message.role == "system" for message in messages):
            settings["anthropic_cache_instructions"] = True
        return settings  # type: ignore[return-value]


def open_wire(name: ModelName, *, base_url: str, key: str, temperature: float) -> Wire:
    """A connection to that model; nothing is sent yet.

    Raises: MissingExtra.
    """
    try:
        import httpx2
        from pydantic_ai.models import create_async_httpx2_client
    except ModuleNotFoundError as error:
        raise MissingExtra(f"The language model {name}", extra=_extra(name)) from error
    # A reasoning model takes no temperature, which the library says at every call; a model on its way out likewise.
    warnings.filterwarnings("ignore", message="Sampling parameters .* are not supported")
    warnings.filterwarnings("ignore", message="The model '.*' is deprecated", category=DeprecationWarning)
    timeout = httpx2.Timeout(600.0, connect=CONNECT_TIMEOUT_S)
    if (urlsplit(base_url).hostname or "") in ("127.0.0.1", "localhost", "::1"):
        # A proxy of the environment cannot know the servers of this machine.
        http = httpx2.AsyncClient(timeout=timeout, trust_env=False)
    else:
        http = create_async_httpx2_client(timeout=timeout)
    try:
        model = _library_model(name, base_url, key or "none", http)
    except ImportError as error:
        raise MissingExtra(f"The language model {name}", extra=_extra(name)) from error
    profile: Mapping[str, Any] = model.profile
    protocol = name.provider.protocol
    return Wire(
        model,
        http,
        temperature,
        native_schema=bool(profile.get("supports_json_schema_output", False)),
        cache_points=protocol in ("anthropic", "openrouter")
        or bool(profile.get("openai_supports_prompt_cache_breakpoints", False)),
        says_finish=protocol not in ("anthropic", "google"),
    )


def _extra(name: ModelName) -> str:
    return "local" if name.provider.protocol == "local" else "llm"


def _library_model(name: ModelName, base_url: str, key: str, http: Any) -> Model:
    protocol = name.provider.protocol
    if protocol == "anthropic":
        from pydantic_ai.models.anthropic import AnthropicModel
        from pydantic_ai.providers.anthropic import AnthropicProvider

        provider = AnthropicProvider(api_key=key, base_url=base_url, http_client=http)
        return AnthropicModel(name.model, provider=provider)
    if protocol == "google":
        from pydantic_ai.models.google import GoogleModel
        from pydantic_ai.providers.google import GoogleProvider

        return GoogleModel(name.model, provider=GoogleProvider(api_key=key, base_url=base_url, http_client=http))

    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider
    from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

    if protocol == "openrouter":
        from openai import AsyncOpenAI
        from pydantic_ai.models.openrouter import OpenRouterModel
        from pydantic_ai.providers.openrouter import OpenRouterProvider

        client = AsyncOpenAI(api_key=key, base_url=base_url, http_client=http)
        return OpenRouterModel(name.model, provider=OpenRouterProvider(openai_client=client))
    if protocol == "ollama":
        from pydantic_ai.models.ollama import OllamaModel
        from pydantic_ai.providers.ollama import OllamaProvider

        ollama = OllamaProvider(base_url=base_url, api_key=key, http_client=http)
        profile = _older_limit(OllamaModel(name.model, provider=ollama).profile)
        return OllamaModel(name.model, provider=ollama, profile=profile)
    if protocol == "azure":
        import os

        from pydantic_ai.providers.azure import AzureProvider

        # An address that ends in /v1 is of the interface without versions. 2024-10-21 is the last dated one.
        dated = None if base_url.endswith("/v1") else os.environ.get("OPENAI_API_VERSION") or "2024-10-21"
        azure = AzureProvider(azure_endpoint=base_url, api_version=dated, api_key=key, http_client=http)
        return OpenAIChatModel(name.model, provider=azure)
    if name.provider.name == "openai":
        return OpenAIChatModel(name.model, provider=OpenAIProvider(base_url=base_url, api_key=key, http_client=http))
    compatible = OpenAICompatibleProvider(name.provider.name, base_url=base_url, api_key=key, http_client=http)
    model = OpenAIChatModel(name.model, provider=compatible)
    return OpenAIChatModel(name.model, provider=compatible, profile=_older_limit(model.profile))


def _older_limit(profile: Any) -> Any:
    """With `max_tokens` for the limit of a reply: `max_completion_tokens` is unknown to Ollama, Mistral and others,
    and an unknown limit is no limit."""
    from pydantic_ai.profiles import merge_profile
    from pydantic_ai.profiles.openai import OpenAIModelProfile

    return merge_profile(profile, OpenAIModelProfile(openai_chat_supports_max_completion_tokens=False))


def to_library(messages: Sequence[Message], *, cache_points: bool) -> list[ModelMessage]:
    """Neighbouring turns of system and user are one request, as the library wants them."""
    from pydantic_ai.messages import (
        CachePoint,
        ModelRequest,
        ModelResponse,
        SystemPromptPart,
        TextPart,
        UserPromptPart,
    )

    found: list[ModelMessage] = []
    parts: list[Any] = []
    for message in messages:
        if message.role == "assistant":
            if parts:
                found.append(ModelRequest(parts=parts))
                parts = []
            found.append(ModelResponse(parts=[TextPart(message.text)]))
        elif message.role == "system":
            parts.append(SystemPromptPart(message.text))
        else:
            # Plain text elsewhere: many servers of the OpenAI protocol do not read lists of parts.
            marked = message.stable and cache_points
            parts.append(UserPromptPart([message.text, CachePoint()] if marked else message.text))
    if parts:
        found.append(ModelRequest(parts=parts))
    return found


def _parameters(schema: type[BaseModel] | None) -> ModelRequestParameters | None:
    if schema is None:
        return None
    from pydantic_ai.models import ModelRequestParameters
    from pydantic_ai.output import OutputObjectDefinition

    wanted = OutputObjectDefinition(json_schema=schema.model_json_schema(), name=schema.__name__)
    return ModelRequestParameters(output_mode="native", output_object=wanted, allow_text_output=True)
