"""Opens an encoder by its name: at a provider, on a server of one's own, from the hub, or from a folder.

    openai:text-embedding-3-small[@512]   google:gemini-embedding-001[@768]   cohere:embed-v4.0[@512]
    ollama:nomic-embed-text               compatible:MODEL                    hub:NAME      onnx:FOLDER

Takes: a name, and where needed an address and a key (else the provider's own variables: OPENAI_API_KEY,
GEMINI_API_KEY or GOOGLE_API_KEY, COHERE_API_KEY or CO_API_KEY, OLLAMA_HOST, …). Returns: an `Embedder` without token
codes. Cost: nothing is asked before it is needed; what is known of a model is not asked at all. What can go wrong: a
name that cannot be meant (UsageError), no key (ModelAuthentication), a file or a package that is absent.
"""

from __future__ import annotations

import os

from cognicraft.errors import UsageError
from cognicraft.models.embed_http import JsonClient
from cognicraft.models.embed_names import (
    EmbedderName,
    address_for,
    canonical_embedder_name,
    key_for,
    parse_embedder_name,
)
from cognicraft.models.embed_prompts import prefixes_of
from cognicraft.models.embed_remote import RemoteEmbedder
from cognicraft.models.embed_wire import WIRES
from cognicraft.protocols import Embedder

__all__ = ["canonical_embedder_name", "open_embedder"]


def open_embedder(
    name: str,
    *,
    base_url: str = "",
    api_key: str | None = None,
    timeout_s: float = 60.0,
    retries: int = 3,
    concurrency: int = 4,
) -> Embedder:
    """The encoder of that name.

    base_url: address of the provider where it is not its usual one; needed by `compatible:`. timeout_s: for one
    request. retries: further tries after too many requests, a failure or a broken connection. concurrency: requests
    side by side. The last four have no meaning for `hub:` and `onnx:`.

    Raises: UsageError, ModelAuthentication, MissingExtra, ModelFileError.
    """
    if timeout_s <= 0 or retries < 0 or concurrency < 1:
        raise UsageError(
            f"An encoder cannot be asked with timeout_s={timeout_s:g}, retries={retries}, concurrency={concurrency}.",
            remedy="Give a time above 0, tries of 0 or more, and at least one request at a time.",
        )
    parsed = parse_embedder_name(name)
    if parsed.provider.name == "hub":
        from cognicraft.models.hub import hub_embedder

        return hub_embedder(parsed.model)
    if parsed.provider.name == "onnx":
        from cognicraft.models.onnx_folder import FolderEmbedder

        return FolderEmbedder(parsed.model)
    wire = WIRES[parsed.provider.name](parsed)
    key = key_for(parsed, api_key, os.environ)
    client = JsonClient(
        name=parsed,
        address=_address(parsed, base_url),
        headers=wire.headers(key),
        key=key,
        timeout_s=timeout_s,
        retries=retries,
    )
    return RemoteEmbedder(parsed, wire=wire, client=client, prefixes=prefixes_of(parsed.model), concurrency=concurrency)


def _address(name: EmbedderName, base_url: str) -> str:
    address = address_for(name, base_url, os.environ)
    if name.provider.name == "google" and not address.endswith(("/v1", "/v1beta")):
        return address + "/v1beta"
    return address.removesuffix("/v2") if name.provider.name == "cohere" else address
