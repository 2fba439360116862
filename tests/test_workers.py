"""Threads, their order, and the one setting of BLAS that all of them share."""

import threading

import pytest
from threadpoolctl import ThreadpoolController, threadpool_limits

from dlcourse.workers import in_order, one_blas_thread


def blas_threads():
    return {found["num_threads"] for found in ThreadpoolController().info() if found["user_api"] == "blas"}


@pytest.fixture(autouse=True)
def two_blas_threads():
    with threadpool_limits(2, "blas"):
        if blas_threads() != {2}:
            pytest.skip("this BLAS has no threads to set")
        yield


def test_blas_has_one_thread_until_the_last_of_several_blocks_ends_whatever_their_order():
    a, b = one_blas_thread(), one_blas_thread()
    a.__enter__()
    b.__enter__()
    a.__exit__(None, None, None)
    assert blas_threads() == {1}
    b.__exit__(None, None, None)
    assert blas_threads() == {2}


def test_blocks_of_many_threads_leave_the_setting_as_it_was():
    start, seen = threading.Barrier(8), set()

    def work():
        start.wait()
        for _ in range(50):
            with one_blas_thread(), one_blas_thread():
                seen.update(blas_threads())

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == {1}
    assert blas_threads() == {2}


def test_an_error_in_a_block_gives_the_setting_back():
    with pytest.raises(KeyError), one_blas_thread():
        raise KeyError
    assert blas_threads() == {2}


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_results_come_in_order_and_at_most_so_many_are_begun(workers):
    begun = []
    results = in_order(lambda i: begun.append(i) or i * i, 7, workers)
    assert next(results) == 0
    assert len(begun) <= workers
    assert list(results) == [1, 4, 9, 16, 25, 36]
