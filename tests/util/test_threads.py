"""One BLAS thread inside, what it was before outside, whatever the order in which threads come and go."""

import threading

import numpy as np
from threadpoolctl import threadpool_info

from moew._util.threads import one_blas_thread


def blas_threads():
    np.ones((2, 2)) @ np.ones((2, 2))
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


def test_threads_that_overlap_leave_no_limit_behind():
    before = blas_threads()
    first_in, first_may_leave = threading.Event(), threading.Event()

    def first():
        with one_blas_thread():
            first_in.set()
            first_may_leave.wait(10)

    worker = threading.Thread(target=first)
    worker.start()
    first_in.wait(10)
    with one_blas_thread():
        assert blas_threads() == {1}
        first_may_leave.set()
        worker.join(10)
        assert blas_threads() == {1}
    assert blas_threads() == before
