"""Names to implementations. Nothing is imported until it is chosen, so a broken plug-in cannot stop the start.

Third parties add to a group by an entry point `cognicraft.embedders` or `cognicraft.splitters` of their package.
"""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Mapping
from importlib.metadata import entry_points
from typing import Any

from cognicraft.errors import MissingExtra, UsageError

# group -> name -> ("module:attribute", the extra that installs it, "" for the base install)
BUILT_IN: Mapping[str, Mapping[str, tuple[str, str]]] = {
    "embedders": {
        "minilm": ("cognicraft.models.minilm:MiniLM", ""),
        "multilingual-e5": ("cognicraft.models.e5:MultilingualE5", "multilingual"),
    },
    "splitters": {
        "structure": ("cognicraft.ingest.split:StructureSplitter", ""),
        "recursive": ("cognicraft.ingest.recursive:RecursiveSplitter", ""),
    },
    "engines": {
        "edge": ("cognicraft.engines.edge:EdgeEngine", ""),
        "memory": ("cognicraft.engines.memory:MemoryEngine", ""),
    },
}


def names(group: str) -> list[str]:
    """Every name of a group, the built-in ones first."""
    return [*BUILT_IN[group], *(point.name for point in entry_points(group=f"cognicraft.{group}"))]


def load(group: str, name: str) -> Any:
    """The class or function of that name.

    Raises: UsageError for a name that nothing has, with the nearest one; MissingExtra where its package is absent.
    """
    if name in BUILT_IN[group]:
        target, extra = BUILT_IN[group][name]
        module_name, _, attribute = target.partition(":")
        try:
            return getattr(importlib.import_module(module_name), attribute)
        except ModuleNotFoundError as error:
            # Only a package that the extra would bring; a fault inside an installed one must show itself.
            if extra and error.name and not error.name.startswith("cognicraft"):
                raise MissingExtra(name, extra=extra) from error
            raise
    for point in entry_points(group=f"cognicraft.{group}", name=name):
        return point.load()
    known = names(group)
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    hint = f"Did you mean {near[0]}?" if near else f"There are: {', '.join(known)}."
    raise UsageError(f"There is no {group[:-1]} named {name!r}.", remedy=hint)
