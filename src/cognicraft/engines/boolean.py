"""What a Boolean query means, once for every engine: takes analysed terms in order, says whether they satisfy it.

`Term` without forms and `Phrase` without terms hold nowhere; `AllOf` without parts holds everywhere, `AnyOf` nowhere.
"""

from __future__ import annotations

from collections.abc import Sequence

from cognicraft.errors import FilterError
from cognicraft.records import AllOf, AnyOf, BooleanQuery, NoneOf, Phrase, Term


def satisfies(terms: Sequence[str], query: BooleanQuery) -> bool:
    """Raises FilterError for something that is not a Boolean query."""
    match query:
        case Term(forms):
            return any(form in terms for form in forms)
        case Phrase(wanted):
            width = len(wanted)
            return width > 0 and any(
                tuple(terms[start : start + width]) == tuple(wanted) for start in range(len(terms) - width + 1)
            )
        case AllOf(parts):
            return all(satisfies(terms, part) for part in parts)
        case AnyOf(parts):
            return any(satisfies(terms, part) for part in parts)
        case NoneOf(part):
            return not satisfies(terms, part)
    raise not_boolean(query)


def not_boolean(thing: object) -> FilterError:
    return FilterError(
        f"{type(thing).__name__} is not a Boolean query.", remedy="Use Term, Phrase, AllOf, AnyOf or NoneOf."
    )
