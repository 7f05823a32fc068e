"""Calls in a thread that can be left behind."""

from __future__ import annotations

import gc
import threading
import weakref

import pytest

from worker.errand import Errands, HungError

LIMIT_S = 60


def test_calls_are_made_one_after_the_other_in_one_other_thread() -> None:
    """And are over when run returns."""
    errands, threads = Errands(), list[threading.Thread]()
    for _ in range(3):
        errands.run(lambda: threads.append(threading.current_thread()), LIMIT_S)
    assert len(threads) == 3
    assert len({id(thread) for thread in threads}) == 1
    assert threads[0] is not threading.current_thread()


def test_what_the_call_raises_is_raised_here() -> None:
    """Also what is no Exception; the next call is made all the same."""
    errands, done = Errands(), list[int]()

    def fail() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        errands.run(fail, LIMIT_S)
    errands.run(lambda: done.append(1), LIMIT_S)
    assert done == [1]


def test_a_call_that_hangs_is_left_behind() -> None:
    """The next one goes to another thread; the first one's ends when its call does."""
    errands, begun, release, threads = Errands(), threading.Event(), threading.Event(), list[threading.Thread]()

    def hang() -> None:
        threads.append(threading.current_thread())
        begun.set()
        release.wait(LIMIT_S)

    with pytest.raises(HungError):
        errands.run(hang, 0.05)
    assert begun.wait(LIMIT_S)
    errands.run(lambda: threads.append(threading.current_thread()), LIMIT_S)
    assert threads[0] is not threads[1]
    release.set()
    threads[0].join(LIMIT_S)
    assert not threads[0].is_alive()


def test_its_thread_ends_with_it() -> None:
    """A consumer that is replaced is closed by one: not a thread more for each."""
    errands, threads = Errands(), list[threading.Thread]()
    errands.run(lambda: threads.append(threading.current_thread()), LIMIT_S)

    del errands
    gc.collect()

    threads[0].join(LIMIT_S)
    assert not threads[0].is_alive()


def test_nothing_is_kept_of_a_call_that_is_over() -> None:
    """A client that only the call held is gone when it is back."""

    class Client:
        pass

    held = [Client()]
    seen = weakref.ref(held[0])
    errands = Errands()
    errands.run(held.clear, LIMIT_S)
    gc.collect()
    assert seen() is None
