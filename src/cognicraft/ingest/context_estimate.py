"""What contexts by a language model will take, before the first call is paid for.

Takes: the files that a run will read, a way to read some of them, what a document asks for. Returns: a
`ContextEstimate`. Method: up to 12 files are read and split in full, spread over kinds and sizes; where that is all of
them nothing is estimated but the tokens. The rest are taken by size: chunks and tokens on a line through the files of
their kind that were read, and for each chunk the tokens of its document as far as the model's window goes. Contexts
kept from earlier runs are known for the files that were read only, so the estimate errs upwards.
Cost: that of reading those files once more. What can go wrong: PDFs of equal size hold very different amounts of text
(scans, pictures). From 12 of 20 company filings chunks and tokens were within a tenth (docs/decisions/0012); a mixed
folder of which few files are read can be off by more.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from cognicraft.ingest.context_llm import USUAL_REPLY_TOKENS, ChunkContexts, Expected

MOST_FILES_READ = 12


@dataclass(frozen=True, slots=True)
class ContextEstimate:
    """What a run is expected to ask of the model.

    chunks: contexts to be asked for; kept: contexts known to be there from before, which cost nothing. files_read: of
    `files`, how many the estimate rests on. cost_usd: at the full price of the prompt, None where it is not known.
    """

    model: str
    files: int
    files_read: int
    chunks: int
    kept: int
    input_tokens: int
    output_tokens: int
    cost_usd: float | None

    @property
    def sampled(self) -> bool:
        return self.files_read < self.files

    def __str__(self) -> str:
        """For the person, in sentences."""
        kept = f" ({self.kept} more are kept from before and cost nothing)" if self.kept else ""
        about = "about " if self.sampled else ""
        base = f", estimated from {self.files_read} of {self.files} files" if self.sampled else ""
        cost = (
            "at a price not known"
            if self.cost_usd is None
            else "free of charge"
            if self.cost_usd == 0
            else f"about {self.cost_usd:.2f} USD at most (prompts that the provider keeps cost less)"
            if self.cost_usd >= 0.01
            else "less than 0.01 USD"
        )
        return (
            f"Contexts by {self.model}: {about}{self.chunks} calls{kept}{base}; about {_rounded(self.input_tokens)} "
            f"tokens in, {_rounded(self.output_tokens)} out, {cost}."
        )


@dataclass(frozen=True, slots=True)
class SizedFile:
    """A file that a run will read. kind: its extension; size in bytes."""

    source: str
    size: int

    @property
    def kind(self) -> str:
        name = self.source.rsplit("/", 1)[-1]
        return name.rsplit(".", 1)[-1].lower() if "." in name else ""


def spread_sample(files: Sequence[SizedFile], *, most: int = MOST_FILES_READ) -> list[SizedFile]:
    """Files to read for the estimate: all if there are few, else of each kind some over the range of its sizes."""
    if len(files) <= most:
        return list(files)
    kinds: dict[str, list[SizedFile]] = defaultdict(list)
    for file in files:
        kinds[file.kind].append(file)
    total = sum(file.size for file in files) or 1
    chosen: list[SizedFile] = []
    # The kinds with the most bytes first: they decide the cost. Each has one, and more by its share of the bytes.
    groups = sorted(kinds.values(), key=lambda group: -sum(file.size for file in group))[:most]
    for group in groups:
        share = sum(file.size for file in group) / total
        wanted = min(1 + int(share * (most - len(groups))), len(group))
        ordered = sorted(group, key=lambda file: (file.size, file.source))
        chosen += [ordered[(2 * number + 1) * len(ordered) // (2 * wanted)] for number in range(wanted)]
    return chosen


def estimate(
    files: Sequence[SizedFile],
    *,
    taken: Mapping[str, Sequence[Expected]],
    contexts: ChunkContexts,
    price: Callable[[int, int], float | None],
) -> ContextEstimate:
    """taken: by source of each file that was read, what its documents ask for (none for one that cannot be read).

    price: (tokens in, tokens out) -> US dollars, None where it is not known.
    """
    read = [expected for source in taken for expected in taken[source]]
    chunks = sum(expected.contexts - expected.kept for expected in read)
    tokens_in = float(sum(expected.input_tokens for expected in read))
    tokens_out = sum(expected.output_tokens for expected in read)
    guessed_chunks = 0.0
    for file in files:
        if file.source not in taken:
            like = [other for other in files if other.source in taken and other.kind == file.kind]
            like = like or [other for other in files if other.source in taken]
            more, more_in = _by_size(file, like, taken, contexts)
            guessed_chunks += more
            tokens_in += more_in
    chunks += round(guessed_chunks)
    tokens_out += round(guessed_chunks * USUAL_REPLY_TOKENS)
    return ContextEstimate(
        model=contexts.model_name,
        files=len(files),
        files_read=len(taken),
        chunks=chunks,
        kept=sum(expected.kept for expected in read),
        input_tokens=round(tokens_in),
        output_tokens=tokens_out,
        cost_usd=price(round(tokens_in), tokens_out),
    )


def _by_size(
    file: SizedFile, like: Sequence[SizedFile], taken: Mapping[str, Sequence[Expected]], contexts: ChunkContexts
) -> tuple[float, float]:
    """Chunks and tokens in of a file that was not read, from those of its kind that were."""
    read = [taken[other.source] for other in like]
    chunks = [sum(expected.contexts for expected in documents) for documents in read]
    own_chunks = _at_size(file.size, like, chunks)
    if not own_chunks:
        return 0.0, 0.0
    if sum(map(len, read)) > 1.5 * len(like):  # files of many records: each is shown by itself
        tokens_in = sum(expected.all_input_tokens for documents in read for expected in documents)
        return own_chunks, own_chunks * tokens_in / sum(chunks)
    tokens = [sum(expected.document_tokens for expected in documents) for documents in read]
    own_tokens = _at_size(file.size, like, tokens)
    return own_chunks, own_chunks * contexts.input_tokens_per_call(own_tokens, chunk_tokens=own_tokens / own_chunks)


def _at_size(size: int, like: Sequence[SizedFile], values: Sequence[int]) -> float:
    """The value for a file of that size: on the line of least squares, which neither falls nor begins below zero.

    Fonts and pictures make a PDF large without any text: in proportion to the size, large files would be overrated,
    and the cost of one grows with the square of its text.
    """
    count, sizes = len(like), [file.size for file in like]
    if not count or not sum(sizes):
        return 0.0
    mean_size, mean = sum(sizes) / count, sum(values) / count
    spread = sum((one - mean_size) ** 2 for one in sizes)
    if count < 4 or not spread:
        return size * mean / mean_size
    slope = sum((one - mean_size) * (value - mean) for one, value in zip(sizes, values, strict=True)) / spread
    slope = min(max(slope, 0.0), mean / mean_size)
    return mean + slope * (size - mean_size)


def _rounded(count: int) -> str:
    """Three figures: the rest is not known."""
    if count < 10_000:
        return str(count)
    for unit, name in ((1_000_000_000, " billion"), (1_000_000, " million"), (1_000, ",000")):
        if count >= unit:
            figure = count / unit
            return f"{figure:.0f}{name}" if figure >= 100 or unit == 1_000 else f"{figure:.1f}{name}"
    return str(count)
