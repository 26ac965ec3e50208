"""Settings: one inert tree, resolved once, passed on as plain arguments.

Takes: arguments, the environment, a `cognicraft.toml`. Returns: a frozen `Settings` and where each value came from.

    argument  >  environment COGNICRAFT_SECTION_FIELD  >  cognicraft.toml  >  default

The file is the first of `--config FILE`, `COGNICRAFT_CONFIG`, `./cognicraft.toml`, `HOME/cognicraft.toml`.
Unknown keys, unknown COGNICRAFT_ variables and values out of bounds are refused with a `SettingsError` that names the
key, where it stands, and the nearest name that exists.

`ingest` settings shape what is stored: a workspace keeps those it was made with in its manifest.
"""

from __future__ import annotations

import difflib
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError

from cognicraft.errors import SettingsError

ENVIRONMENT_PREFIX = "COGNICRAFT_"
# Variables with the prefix that are no settings: read elsewhere, never refused.
OTHER_VARIABLES = frozenset({"COGNICRAFT_CONFIG", "COGNICRAFT_CACHE", "COGNICRAFT_REQUIRE", "COGNICRAFT_HTTP_TOKEN"})
OTHER_PREFIXES = ("COGNICRAFT_TEST_",)

ContextMode = Literal["none", "outline", "llm"]
FusionMode = Literal["zscore", "minmax", "rrf", "dbsf"]
RerankMode = Literal["none", "late-interaction", "cross-encoder", "llm", "llm-listwise", "remote"]


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class IngestSettings(Section):
    """How documents are read, cut and encoded. Fixed for a workspace when it is made, down to `late_interaction`."""

    encoders: Annotated[tuple[str, ...], Field(min_length=1)] = ("minilm",)
    """Dense encoders, each an arm of its own: `minilm` (English, shipped), `multilingual-e5` (100 languages), those of
    providers (`openai:text-embedding-3-large@1024`, `ollama:nomic-embed-text`, ...), `hub:NAME`, `onnx:FOLDER`."""
    splitter: Literal["structure", "recursive"] = "structure"
    """How documents are cut: along their structure, or by characters as many systems do."""
    chunk_tokens: Annotated[int, Field(ge=16, le=512)] = 160
    """Largest chunk of the structure splitter, in tokens of the first encoder."""
    overlap_tokens: Annotated[int, Field(ge=0, le=256)] = 0
    """Tokens of whole sentences that a chunk repeats of the one before."""
    chunk_characters: Annotated[int, Field(ge=50, le=20_000)] = 1500
    """Largest chunk of the recursive splitter, in characters."""
    overlap_characters: Annotated[int, Field(ge=0, le=5_000)] = 200
    """Characters that the recursive splitter repeats."""
    separators: tuple[str, ...] = ("\n\n", "\n", ". ", " ", "")
    """What the recursive splitter cuts at, the first first."""
    context_dense: ContextMode = "outline"
    """What stands before a chunk when the dense encoders see it: nothing, title, file name and headings (`outline`), or
    these with a few sentences by a language model that place the chunk in its document (`llm`)."""
    context_lexical: ContextMode = "outline"
    """The same for the lexical arm."""
    late_interaction: bool = True
    """Keep one bit per dimension of each token vector (about 10 kB a chunk) for late-interaction reranking."""
    workers: Annotated[int, Field(ge=0, le=64)] = 0
    """Reader processes; 0 = one per core, at most 4."""
    memory_limit_mb: Annotated[int, Field(ge=256)] = 2048
    """Memory that one reader process may take, in MB."""
    deadline_s: Annotated[float, Field(gt=0)] = 120.0
    """Longest time for reading one file, in seconds."""
    max_file_mb: Annotated[int, Field(ge=1)] = 100
    """Largest file, in MB."""
    json_text: tuple[str, ...] = ()
    """JSON fields (names or pointers, `*` allowed) that are text; empty: every string."""
    json_metadata: tuple[str, ...] = ()
    """JSON fields that become metadata to filter by; empty: chosen by the reader."""


class SearchSettings(Section):
    """How a question is searched. Any of it may differ from one question to the next."""

    arms: tuple[str, ...] = ()
    """Arms to run: encoder names, `dense` (all encoders), `lexical`, `boolean`; empty: every encoder and lexical."""
    fusion: FusionMode = "zscore"
    """How the arms' scores become one."""
    weights: dict[str, Annotated[float, Field(ge=0)]] = {}
    """Weight of each arm in the fusion; arms not named weigh 1."""
    rrf_k: Annotated[float, Field(gt=0)] = 60.0
    """k of reciprocal rank fusion."""
    rrf_first_rank: Annotated[int, Field(ge=0, le=1)] = 1
    """Whether reciprocal rank fusion counts ranks from 1 (its paper) or from 0."""
    depth: Annotated[int, Field(ge=1, le=10_000)] = 100
    """Hits taken from each arm, in chunks."""
    rerank: RerankMode = "late-interaction"
    """What looks at the fused hits again. All but `none` begin with late interaction, which costs no further model."""
    rerank_model: str = ""
    """Model of the `cross-encoder` (a hub name or an ONNX folder) or of `remote`; empty: ms-marco-MiniLM-L-6-v2."""
    rerank_url: str = ""
    """Address of a `remote` reranker (Cohere, Jina or TEI shape), or `cohere` or `jina`; key: COHERE_API_KEY,
    JINA_API_KEY, elsewhere RERANK_API_KEY."""
    rerank_candidates: Annotated[int, Field(ge=1, le=1000)] = 20
    """Hits that a cross-encoder, a language model or a remote reranker reads."""
    rerank_share: Annotated[float, Field(ge=0, le=1)] = 0.7
    """Share of a language model's judgement in the new score; the rest is the score that the hit had."""
    route: bool = True
    """Whether documents that the question names (by file, title, period) are preferred."""
    plan: bool = False
    """Whether a language model plans the search: intent, strategy, variations, parts of the question."""
    hyde: bool = False
    """Whether a language model writes a passage such as might answer, and it is searched with too."""
    variations: Annotated[int, Field(ge=0, le=12)] = 5
    """Other wordings of the question that a plan asks for."""
    plan_timeout_s: Annotated[float, Field(gt=0)] = 15.0
    """Longest wait for a plan, in seconds; after it the search goes on without."""
    rerank_depth: Annotated[int, Field(ge=1, le=10_000)] = 100
    """How many of the fused hits are reranked, in chunks."""
    rerank_budget_ms: Annotated[float, Field(gt=0)] = 250.0
    """Time for reranking, in milliseconds: the depth adapts, and the result says what was reranked."""
    limit: Annotated[int, Field(ge=1, le=1000)] = 10
    """Hits returned."""


class AnswerSettings(Section):
    """How an answer is made from the hits."""

    limit: Annotated[int, Field(ge=1, le=1000)] = 50
    """Hits that are fused and reranked for an answer by a model."""
    top_k: Annotated[int, Field(ge=1, le=200)] = 20
    """Hits that a model is given as evidence, best first, as far as `max_tokens` goes."""
    max_tokens: Annotated[int, Field(ge=200, le=1_000_000)] = 16_000
    """Tokens of evidence that a model is given, or of a whole document."""
    prompt: str = "assistant"
    """Prompt template: `assistant`, `translation`, `scientific`, `legal`, or the path of a file of your own."""
    persona: str = ""
    """Who the model answers as, one sentence put into the template."""
    style: str = ""
    """How it answers ("in one sentence", "as a list"), put into the template."""
    language: str = ""
    """Language of the answer; empty: that of the question."""
    verify: bool = True
    """Whether each claim that a model writes is checked against the evidence."""
    judge: Literal["signals", "model"] = "signals"
    """What checks claims: `signals` needs no model; `model` asks one besides, which must quote the evidence."""
    confidence_threshold: Annotated[float, Field(ge=0, le=1)] = 0.7
    """Confidence below which an answer is searched and written again."""
    max_corrections: Annotated[int, Field(ge=0, le=5)] = 2
    """Rounds of searching and writing again, at most."""
    strict: bool = False
    """Whether sentences that did not stand the check are struck."""
    passages: Annotated[int, Field(ge=1, le=100)] = 10
    """Hits that may be quoted where no model answers."""
    max_sentences: Annotated[int, Field(ge=1, le=20)] = 3
    """Sentences quoted at most where no model answers."""
    threshold: Annotated[float, Field(ge=0, le=1)] | None = None
    """Confidence below which the answer is that the documents do not tell; unset: the measured default."""


class ModelSettings(Section):
    """Language models. `provider:model`; keys come from the providers' own variables (OPENAI_API_KEY, ...)."""

    answer: str = "auto"
    """Model that writes answers: `provider:model`, `provider:small` (or medium, large, flagship), `local:FILE.gguf`,
    `none`; `auto`: a running Ollama, else none."""
    small: str = ""
    """Model for planning, rewriting, reranking, contexts and checks; empty: the small one of the answer's provider."""
    plan: str = ""
    """Model that plans the search, where it is not the small one."""
    rewrite: str = ""
    """Model that rewrites follow-up questions, where it is not the small one."""
    rerank: str = ""
    """Model that judges passages, where it is not the small one."""
    check: str = ""
    """Model that checks claims, where it is not the small one."""
    context: str = ""
    """Model that places chunks in their document, where it is not the small one."""
    base_url: str = ""
    """Address of the provider, where it is not its usual one; needed by `compatible:MODEL` (any OpenAI-compatible)."""
    api_key: SecretStr | None = None
    """Key of `compatible:MODEL`; the other providers have their own variables."""
    temperature: Annotated[float, Field(ge=0, le=2)] = 0.0
    """Randomness of replies; 0 gives the likeliest."""
    timeout_s: Annotated[float, Field(gt=0)] = 120.0
    """Longest wait for one reply, in seconds."""
    retries: Annotated[int, Field(ge=0, le=10)] = 3
    """Further tries after too many requests, a failure at the provider or a broken connection."""
    concurrency: Annotated[int, Field(ge=1, le=64)] = 4
    """Calls that run side by side."""
    max_output_tokens: Annotated[int, Field(ge=16)] = 1024
    """Tokens of one reply."""
    context_tokens: Annotated[int, Field(ge=512)] | None = None
    """Tokens that the model reads; unset: from the catalog."""
    cache: bool = True
    """Keep replies on disk and use them again for the same call."""
    budget_usd: Annotated[float, Field(ge=0)] | None = None
    """Most that one command or one question may cost, in US dollars; a model of unknown price is refused then."""
    budget_tokens: Annotated[int, Field(ge=0)] | None = None
    """Most tokens, in and out, that one command or one question may take."""
    catalog: str = ""
    """TOML file that adds to or changes the catalog of providers and models."""


class Settings(Section):
    """The whole tree."""

    home: Path = Path("~/.cognicraft")
    """Folder that holds the workspaces."""
    workspace: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")] = "default"
    """Workspace to use: letters, digits, `.`, `_`, `-`."""
    engine: str = "edge"
    """Where chunks are kept: `edge` (on disk) or `memory` (gone when the process ends)."""
    lock_wait_s: Annotated[float, Field(ge=0)] = 5.0
    """How long to wait for a workspace that another process holds, in seconds."""
    ingest: IngestSettings = IngestSettings()
    search: SearchSettings = SearchSettings()
    answer: AnswerSettings = AnswerSettings()
    model: ModelSettings = ModelSettings()

    @property
    def home_folder(self) -> Path:
        return self.home.expanduser().absolute()


@dataclass(frozen=True, slots=True)
class Resolved:
    """Settings with the origin of each value (dotted key -> "default", "argument", a variable or a file)."""

    settings: Settings
    origins: Mapping[str, str]
    file: Path | None

    def changed(self, values: Mapping[str, object]) -> Settings:
        """These settings with some values (by dotted key) changed. Raises: SettingsError."""
        own: dict[str, object] = dict(_flat(self.settings))
        return resolve({**own, **values}, environment={}, files=False).settings

    def rows(self) -> list[tuple[str, str, str]]:
        """(dotted key, value as text with secrets masked, origin), in the order of the tree."""
        return [(key, _printable(value), self.origins.get(key, "default")) for key, value in _flat(self.settings)]


def fields() -> dict[str, Any]:
    """Dotted key -> pydantic FieldInfo of every leaf, in the order of the tree."""
    found: dict[str, Any] = {}
    for name, info in Settings.model_fields.items():
        section = info.annotation
        if isinstance(section, type) and issubclass(section, Section):
            found.update({f"{name}.{inner}": field for inner, field in section.model_fields.items()})
        else:
            found[name] = info
    return found


def resolve(
    arguments: Mapping[str, object] | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    config_file: str | Path | None = None,
    files: bool = True,
) -> Resolved:
    """Settle every value once.

    arguments: dotted key -> value; None values are taken as not given. files: whether to look for a settings file.
    Raises: SettingsError.
    """
    environment = os.environ if environment is None else environment
    given = {key: value for key, value in (arguments or {}).items() if value is not None}
    values: dict[str, object] = {}
    origins: dict[str, str] = {}

    def put(key: str, value: object, origin: str) -> None:
        _known(key, origin)
        values[key] = value
        origins[key] = origin

    from_environment = _environment(environment)
    file = _config_file(config_file, environment, given, from_environment) if files else None
    if file is not None:
        for key, value in _read_toml(file).items():
            put(key, value, str(file))
    for key, (variable, text) in from_environment.items():
        put(key, _parse_text(key, text), variable)
    for key, value in given.items():
        put(key, value, "argument")

    tree: dict[str, Any] = {}
    for key, value in values.items():
        section, _, field = key.rpartition(".")
        (tree.setdefault(section, {}) if section else tree)[field] = value
    try:
        settings = Settings.model_validate(tree)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"][:2])
        raise SettingsError(
            f"The setting {key} ({origins.get(key, 'argument')}) is not usable: {first['msg']}, "
            f"got {first['input']!r}.",
            remedy="`cognicraft config show` lists every setting with its value.",
        ) from None
    return Resolved(settings=settings, origins=origins, file=file)


def parse_value(key: str, text: str) -> object:
    """A setting's value as it is typed: lists by comma, tables as `name=1,other=2`. Raises: SettingsError."""
    _known(key, "argument")
    return _parse_text(key, text)


def _known(key: str, origin: str) -> None:
    if key in fields():
        return
    near = difflib.get_close_matches(key, fields(), n=1, cutoff=0.5)
    hint = f"Did you mean {near[0]}?" if near else "`cognicraft config show` lists those that exist."
    raise SettingsError(f"There is no setting {key} ({origin}).", remedy=hint)


def _environment(environment: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    names = {ENVIRONMENT_PREFIX + key.replace(".", "_").upper(): key for key in fields()}
    found: dict[str, tuple[str, str]] = {}
    for variable, text in environment.items():
        if not variable.startswith(ENVIRONMENT_PREFIX) or variable in OTHER_VARIABLES:
            continue
        if variable.startswith(OTHER_PREFIXES):
            continue
        if variable not in names:
            near = difflib.get_close_matches(variable, names, n=1, cutoff=0.5)
            hint = f"Did you mean {near[0]}?" if near else "`cognicraft config show` lists those that exist."
            raise SettingsError(f"There is no setting for the variable {variable}.", remedy=hint)
        found[names[variable]] = (variable, text)
    return found


def _config_file(
    explicit: str | Path | None,
    environment: Mapping[str, str],
    given: Mapping[str, object],
    from_environment: Mapping[str, tuple[str, str]],
) -> Path | None:
    named = explicit or environment.get("COGNICRAFT_CONFIG")
    if named:
        path = Path(named).expanduser()
        if not path.is_file():
            raise SettingsError(
                f"The settings file {path} does not exist.",
                remedy="Give the path of a TOML file, or leave --config and COGNICRAFT_CONFIG out.",
            )
        return path
    home = given.get("home") or from_environment.get("home", ("", "~/.cognicraft"))[1]
    for path in (Path("cognicraft.toml"), Path(str(home)).expanduser() / "cognicraft.toml"):
        if path.is_file():
            return path
    return None


def _read_toml(file: Path) -> dict[str, object]:
    try:
        tree = tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise SettingsError(
            f"The settings file {file} cannot be read: {error}.",
            remedy="Correct it, or move it away to use the defaults.",
        ) from None
    flat: dict[str, object] = {}
    for key, value in tree.items():
        known_section = any(name.startswith(f"{key}.") for name in fields())
        if isinstance(value, dict) and (known_section or key not in fields()):
            flat.update({f"{key}.{inner}": leaf for inner, leaf in value.items()})
            if not value:
                _known(f"{key}.", str(file)) if not known_section else None
        else:
            flat[key] = value
    return flat


def _parse_text(key: str, text: str) -> object:
    """An environment variable's text in the shape of its field: lists by comma, tables as `name=1,other=2`."""
    annotation = str(fields()[key].annotation)
    if "dict" in annotation:
        pairs = (part.partition("=") for part in text.split(",") if part.strip())
        return {name.strip(): value.strip() for name, _, value in pairs}
    if "tuple" in annotation:
        return tuple(part.strip() for part in text.split(",") if part.strip())
    if "None" in annotation and text.strip().lower() in ("", "none"):
        return None
    return text


def _flat(settings: Settings) -> list[tuple[str, object]]:
    rows: list[tuple[str, object]] = []
    for key in fields():
        value: Any = settings
        for part in key.split("."):
            value = getattr(value, part)
        rows.append((key, value))
    return rows


def _printable(value: object) -> str:
    if isinstance(value, SecretStr):
        return "********" if value.get_secret_value() else ""
    if isinstance(value, tuple):
        return ", ".join(repr(item) if item.strip() != item or not item else item for item in map(str, value))
    if isinstance(value, dict):
        return ", ".join(f"{name}={item}" for name, item in value.items())
    return "" if value is None else str(value)
