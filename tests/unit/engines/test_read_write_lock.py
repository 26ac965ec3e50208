from __future__ import annotations

import threading

from cognicraft.engines.read_write_lock import ReadWriteLock


def test_readers_run_beside_each_other() -> None:
    lock = ReadWriteLock()
    together = threading.Barrier(3, timeout=10)

    def read() -> None:
        with lock.read():
            together.wait()

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not together.broken


def test_a_writer_is_alone_and_nothing_is_lost() -> None:
    lock = ReadWriteLock()
    pair = [0, 0]
    torn: list[tuple[int, int]] = []
    stop = threading.Event()

    def read() -> None:
        while not stop.is_set():
            with lock.read():
                first, second = pair
                if first != second:
                    torn.append((first, second))

    def write() -> None:
        for _ in range(300):
            with lock.write():
                pair[0] += 1
                pair[1] += 1

    readers = [threading.Thread(target=read) for _ in range(2)]
    writers = [threading.Thread(target=write) for _ in range(2)]
    for thread in readers + writers:
        thread.start()
    for thread in writers:
        # Readers that never stop do not keep a writer out.
        thread.join(timeout=60)
        assert not thread.is_alive()
    stop.set()
    for thread in readers:
        thread.join()
    assert (pair, torn) == ([600, 600], [])


def test_an_error_inside_frees_the_lock() -> None:
    lock = ReadWriteLock()
    for side in (lock.read, lock.write):
        try:
            with side():
                raise ValueError
        except ValueError:
            pass
    with lock.write():
        pass
