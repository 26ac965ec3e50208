"""Give column heads to columns, heads of several columns included.

Takes: head cells with their places, and columns. Returns: a head per column, and the heads that fit nowhere.
Method: cells set as close as lines of one text, one over the other, are one head. From the bottom up, the heads of a
level are shared out among the columns, each to one column or to neighbours whose common centre or right edge it has, at
the least total distance (dynamic programming over both); "Three Months Ended" over two dates counts for both.
Cost: heads x columns squared, both small. What can go wrong: a head over the middle one of three columns that is meant
for it alone, set apart from what is under it, looks like a head of all three.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cognicraft.ingest.pdf_rows import Column
from cognicraft.ingest.pdf_source import Rule

LINE_GAP = 0.2
"""White space between lines of one head, in line heights; between a head and those under it there is more."""
UNCOVERED = 4.0
"""What a column left without head costs, in points of bad centring."""


@dataclass(slots=True)
class HeadBlock:
    """A head cell of one or more lines, `line` high each. `order` is its place in the content stream."""

    text: str
    left: float
    right: float
    top: float
    bottom: float
    line: float
    order: int

    @property
    def center(self) -> float:
        return (self.left + self.right) / 2


def merged(blocks: Sequence[HeadBlock]) -> list[HeadBlock]:
    """The blocks, with those joined that are set over each other as lines of one text."""
    left: list[HeadBlock] = []
    for block in sorted(blocks, key=lambda block: block.bottom):
        line = block.line
        under = [
            other
            for other in left
            if -0.6 * line <= block.bottom - other.top < LINE_GAP * line
            and min(block.right, other.right) - max(block.left, other.left)
            >= 0.5 * min(block.right - block.left, other.right - other.left)
        ]
        if len(under) == 1:
            other = under[0]
            other.text = f"{block.text} {other.text}"
            other.left, other.right = min(block.left, other.left), max(block.right, other.right)
            other.top = max(block.top, other.top)
        else:
            left.append(block)
    return left


def assign(
    blocks: Sequence[HeadBlock],
    columns: Sequence[Column],
    heads: list[str],
    *,
    rules: Callable[[], Sequence[Rule]] = tuple,
) -> list[str]:
    """Give each block to its columns, lowest level first; the texts of those that fit none."""
    levels: list[list[HeadBlock]] = []
    for block in sorted(blocks, key=lambda block: block.bottom):
        if levels and block.bottom - levels[-1][0].bottom < 0.5 * min(block.line, levels[-1][0].line):
            levels[-1].append(block)
        else:
            levels.append([block])
    given: list[list[HeadBlock]] = [[] for _ in columns]
    unplaced: list[HeadBlock] = []
    for level in levels:
        level.sort(key=lambda block: block.left)
        spanning = len(levels) > 1 and len(level) < len(columns)
        ruled = [_ruled(block, columns, rules()) for block in level] if spanning else []
        ruled = ruled if len(set(ruled)) == len(ruled) else []
        places = (
            _by_rules(level, columns, ruled) or _regular(level, columns, given) or _best_places(level, columns, given)
        )
        for block, place in zip(level, places, strict=True):
            if place is None:
                unplaced.append(block)
            else:
                for number in range(place[0], place[1] + 1):
                    given[number].append(block)
    for number, over in enumerate(given):
        heads[number] = " ".join(block.text for block in sorted(over, key=lambda block: -block.top))
    return [block.text for block in sorted(unplaced, key=lambda block: block.order)]


def _ruled(block: HeadBlock, columns: Sequence[Column], rules: Sequence[Rule]) -> tuple[int, int] | None:
    """The columns over which the rule under a head runs, where there is one that ends with columns."""
    under = [
        rule
        for rule in rules
        if -0.3 * block.line <= block.bottom - rule.y <= 0.8 * block.line and rule.left <= block.center <= rule.right
    ]
    if not under:
        return None
    rule = max(under, key=lambda rule: rule.y)
    over = [
        number
        for number, column in enumerate(columns)
        if rule.left - 2 <= column.left and column.right <= rule.right + 4
    ]
    whole = not over or rule.left < columns[over[0]].outer_left - 8 * block.line
    cut = any(
        column.overlaps(rule.left + 3, rule.right - 3) for number, column in enumerate(columns) if number not in over
    )
    if whole or cut or over != list(range(over[0], over[-1] + 1)):
        return None
    return over[0], over[-1]


def _by_rules(
    level: Sequence[HeadBlock], columns: Sequence[Column], ruled: Sequence[tuple[int, int] | None]
) -> list[tuple[int, int] | None] | None:
    """Places as the rules tell; a head without a rule gets the column that it stands over alone."""
    if not any(ruled):
        return None
    taken = {number for place in ruled if place for number in range(place[0], place[1] + 1)}
    places: list[tuple[int, int] | None] = []
    for block, place in zip(level, ruled, strict=True):
        free = [
            number for number in range(len(columns)) if number not in taken and _in_territory(block, number, columns)
        ]
        places.append(place or ((free[0], free[0]) if len(free) == 1 else None))
        if place is None and len(free) != 1:
            return None
    return places


def _regular(
    level: Sequence[HeadBlock], columns: Sequence[Column], given: Sequence[Sequence[HeadBlock]]
) -> list[tuple[int, int] | None] | None:
    """Each head over as many columns as the next, where that fits: the commonest table."""
    size, rest = divmod(len(columns), len(level))
    if rest or len(level) == 1:
        return None
    places: list[tuple[int, int] | None] = [(number * size, number * size + size - 1) for number in range(len(level))]
    fits = (
        place is not None and _fit(block, *place, columns, given) is not None
        for block, place in zip(level, places, strict=True)
    )
    return places if all(fits) else None


def _best_places(
    level: Sequence[HeadBlock], columns: Sequence[Column], given: Sequence[Sequence[HeadBlock]]
) -> list[tuple[int, int] | None]:
    """For each block its first and last column, none twice, at the least cost in total."""
    count = len(columns)
    missing = 1000.0
    # best[b][c]: cost of placing blocks b.. in columns c.., and the place of block b.
    best: list[list[tuple[float, tuple[int, int] | None, int]]] = [
        [(0.0, None, 0)] * (count + 1) for _ in range(len(level) + 1)
    ]
    for c in range(count, -1, -1):
        best[len(level)][c] = (UNCOVERED * (count - c), None, count)
    for b in range(len(level) - 1, -1, -1):
        for c in range(count, -1, -1):
            choices: list[tuple[float, tuple[int, int] | None, int]] = [(missing + best[b + 1][c][0], None, c)]
            for i in range(c, count):
                for j in range(i, count):
                    cost = _fit(level[b], i, j, columns, given)
                    if cost is not None:
                        total = cost + UNCOVERED * (i - c) + best[b + 1][j + 1][0]
                        choices.append((total, (i, j), j + 1))
            best[b][c] = min(choices, key=lambda choice: choice[0])
    places: list[tuple[int, int] | None] = []
    c = 0
    for b in range(len(level)):
        _, place, c = best[b][c]
        places.append(place)
    return places


def _in_territory(block: HeadBlock, number: int, columns: Sequence[Column]) -> bool:
    """Whether a block is over this column and reaches into no other's place."""
    column = columns[number]
    free_left = columns[number - 1].right - 1 if number else column.outer_left - 4 * block.line
    free_right = columns[number + 1].outer_left + 1 if number + 1 < len(columns) else float("inf")
    over = column.overlaps(block.left, block.right)
    return over and block.left >= free_left and block.right <= free_right


def _fit(
    block: HeadBlock, first: int, last: int, columns: Sequence[Column], given: Sequence[Sequence[HeadBlock]]
) -> float | None:
    """How far, in points, a block is from sitting over these columns; None where it does not."""
    group = columns[first : last + 1]
    below = [head for heads in given[first : last + 1] for head in heads]
    if first == last and _in_territory(block, first, columns):
        return 0.2 * min(10.0, abs(block.center - (columns[first].outer_left + columns[first].right) / 2))
    left = min([column.outer_left for column in group] + [head.left for head in below])
    right = max([column.right for column in group] + [head.right for head in below])
    if min(block.right, right) - max(block.left, left) <= 0:
        return None
    off_center = abs(block.center - (left + right) / 2)
    if first == last:
        column = columns[first]
        off = min(
            off_center,
            abs(block.center - (column.left + column.right) / 2),
            abs(block.right - column.right),
            abs(block.left - column.left),
            abs(block.left - column.outer_left),
        )
        width = max(right - left, block.right - block.left)
        return off if off <= max(8.0, 0.35 * width) else None
    off_center = min(off_center, abs(block.right - group[-1].right) + 1)  # heads may be set to the right, like numbers
    if off_center > 6 + 0.06 * (right - left):
        return None
    headed = [bool(heads) for heads in given[first : last + 1]]
    if any(headed) and not all(headed):
        return None
    if not all(headed):
        # One head over columns that have none: it may be the head of one of them alone.
        over_one = any(column.left <= block.center <= column.right for column in group)
        if over_one or any(_in_territory(block, number, columns) for number in range(first, last + 1)):
            return None
    return off_center + 0.5
