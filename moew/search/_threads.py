"""One BLAS thread for matrices of a few hundred rows."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from typing import ParamSpec, TypeVar

from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()  # finding the loaded libraries takes milliseconds: once is enough


def one_blas_thread(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Decorator: NumPy and SciPy compute with one thread in `function`.

    The products here are too small to share. On a busy machine the threads wait for each other: one
    product was measured to take ten times as long with two threads as with one. It also keeps the last bits
    of a proposal from depending on the number of cores.
    """

    @wraps(function)
    def limited(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        with _controller().limit(limits=1, user_api="blas"):
            return function(*args, **kwargs)

    return limited
