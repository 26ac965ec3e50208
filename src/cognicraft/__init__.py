"""CogniCraft: ask your own documents and trust the answer.

    from cognicraft import Workspace

    with Workspace("filings") as workspace:
        workspace.ingest("~/filings")
        print(workspace.ask("What were net sales of services in Q3 2022?").answer)

Importing this package imports nothing heavy: each name is loaded when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cognicraft.config import Settings, resolve
    from cognicraft.errors import CogniCraftError
    from cognicraft.results import (
        Answer,
        DocumentInfo,
        IngestReport,
        SearchHit,
        SearchResult,
        Sentence,
        Source,
        Verification,
    )
    from cognicraft.workspace import Workspace

__version__ = "0.1.0"

__all__ = [
    "Answer",
    "CogniCraftError",
    "DocumentInfo",
    "IngestReport",
    "SearchHit",
    "SearchResult",
    "Sentence",
    "Settings",
    "Source",
    "Verification",
    "Workspace",
    "__version__",
    "resolve",
]

_HOME = {
    "Answer": "results",
    "CogniCraftError": "errors",
    "DocumentInfo": "results",
    "IngestReport": "results",
    "SearchHit": "results",
    "SearchResult": "results",
    "Sentence": "results",
    "Settings": "config",
    "Source": "results",
    "Verification": "results",
    "Workspace": "workspace",
    "resolve": "config",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
