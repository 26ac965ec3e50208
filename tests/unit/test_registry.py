"""Names to implementations."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from cognicraft import registry
from cognicraft.errors import UsageError


def test_an_unknown_name_is_refused_with_the_nearest() -> None:
    with pytest.raises(UsageError, match=r"no embedder named 'minilmm'.*Did you mean minilm\?"):
        registry.load("embedders", "minilmm")


@pytest.mark.parametrize(
    ("group", "name"), [(group, name) for group, names in registry.BUILT_IN.items() for name in names]
)
def test_every_built_in_name_has_its_module_and_attribute(group: str, name: str) -> None:
    module, _, attribute = registry.BUILT_IN[group][name][0].partition(":")
    found = importlib.util.find_spec(module)
    assert found is not None
    assert found.origin is not None
    assert f"class {attribute}" in Path(found.origin).read_text()
