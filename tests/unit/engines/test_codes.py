from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cognicraft.engines.codes import CodeFiles, Place
from cognicraft.errors import EngineError


def some(seed: int, rows: int = 5) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (rows, 6), dtype=np.uint8)


def test_codes_come_back_after_reopening(tmp_path: Path) -> None:
    files = CodeFiles(tmp_path)
    arrays = [some(1), some(2, rows=0), some(3, rows=9)]
    places = files.append(arrays) + files.append([some(4)])
    files.close()
    again = CodeFiles(tmp_path)
    for place, array in zip(places, [*arrays, some(4)], strict=True):
        assert np.array_equal(again.read(place), array)
    again.close()


def test_a_full_file_is_followed_by_the_next(tmp_path: Path) -> None:
    files = CodeFiles(tmp_path, file_bytes=40)
    places = [files.append([some(seed)])[0] for seed in range(6)]
    assert [place.file for place in places] == [0, 0, 1, 1, 2, 2]
    assert all(np.array_equal(files.read(place), some(seed)) for seed, place in enumerate(places))
    files.close()


def test_a_removed_file_gives_its_bytes_back_and_its_number_is_not_used_again(tmp_path: Path) -> None:
    files = CodeFiles(tmp_path)
    (old,) = files.append([some(1)])
    files.start_file()
    (new,) = files.append([some(2)])
    assert np.array_equal(files.read(old), some(1))
    files.remove(old.file)
    assert files.sizes() == {new.file: 30}
    with pytest.raises(EngineError, match=r"000000\.codes"):
        files.read(old)
    files.remove(new.file)
    assert np.array_equal(files.read(new), some(2)), "the last file stays"
    files.close()


def test_a_cut_file_is_an_error_that_names_it(tmp_path: Path) -> None:
    files = CodeFiles(tmp_path)
    files.append([some(1)])
    with pytest.raises(EngineError, match=r"000000\.codes"):
        files.read(Place(0, 20, 5, 6))
    files.close()
