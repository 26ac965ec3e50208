"""Dense encoders by name: of the registry, of a provider (`openai:…`), of the hub (`hub:…`), of a folder (`onnx:…`)."""

from __future__ import annotations

import inspect
import sys
from functools import cache

from cognicraft import registry
from cognicraft.protocols import Embedder

SHIPPED = "minilm"
"""The encoder that travels with the package."""


@cache
def embedder_named(name: str, *, base_url: str = "", api_key: str | None = None) -> Embedder:
    """The encoder of that name, loaded once in a process. base_url, api_key: of `compatible:MODEL` only.

    Raises: UsageError, MissingExtra, ModelFileError, ModelAuthentication.
    """
    if ":" in name:
        from cognicraft.models.provider_embedders import open_embedder

        own = name.startswith("compatible:")
        return open_embedder(name, base_url=base_url if own else "", api_key=api_key if own else None)
    kind = registry.load("embedders", name)
    # A model that is converted once on its first use takes half a minute: say so.
    wants_progress = "progress" in inspect.signature(kind).parameters
    embedder: Embedder = kind(progress=lambda line: print(line, file=sys.stderr)) if wants_progress else kind()
    return embedder


def canonical_name(name: str) -> str:
    """The one spelling of an encoder's name. Raises: UsageError."""
    if ":" not in name:
        return name
    from cognicraft.models.provider_embedders import canonical_embedder_name

    return canonical_embedder_name(name)


def keeps_token_codes(name: str) -> bool:
    """Whether an encoder gives token vectors, which late interaction wants: encoders that run elsewhere do not."""
    return ":" not in name
