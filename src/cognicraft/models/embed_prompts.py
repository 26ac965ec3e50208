"""What stands before a text, by the family of the encoder, wherever it runs: the words that it was trained with.

Takes: the name of a model at its provider. Returns: the query's and the documents' prefix, from the model cards. Left
out, a model still gives vectors, only worse ones; so a family that is not listed has none.
"""

from __future__ import annotations

import re
from typing import NamedTuple


class Prefixes(NamedTuple):
    """Put before each text as it is, with its own trailing space."""

    query: str = ""
    document: str = ""


_PASSAGES = "Represent this sentence for searching relevant passages: "
_INSTRUCT = "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery: "
# The first that is found in the name, in small letters, holds.
_FAMILIES = tuple(
    (re.compile(pattern), prefixes)
    for pattern, prefixes in (
        (r"nomic-embed-(text|code)", Prefixes("search_query: ", "search_document: ")),
        (r"modernbert-embed", Prefixes("search_query: ", "search_document: ")),
        (r"mxbai-embed", Prefixes(_PASSAGES)),
        (r"snowflake-arctic-embed.*(v2|2)(\W|$)", Prefixes("query: ")),
        (r"arctic-embed", Prefixes(_PASSAGES)),
        (r"bge-(small|base|large)-zh", Prefixes("为这个句子生成表示以用于检索相关文章：")),
        (r"bge-(small|base|large)", Prefixes(_PASSAGES)),
        (r"e5.*instruct|e5-mistral", Prefixes(_INSTRUCT)),
        (r"(^|[-/_])e5-", Prefixes("query: ", "passage: ")),
        (r"embedding-?gemma", Prefixes("task: search result | query: ", "title: none | text: ")),
        (r"gemini-embedding-2", Prefixes("task: search result | query: ", "title: none | text: ")),
        (r"qwen3-embedding", Prefixes(_INSTRUCT)),
    )
)


def prefixes_of(model: str) -> Prefixes:
    """The prefixes of that model; none where its family has none, or is not known."""
    name = model.lower()
    return next((prefixes for pattern, prefixes in _FAMILIES if pattern.search(name)), Prefixes())
