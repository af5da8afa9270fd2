"""Seeds by purpose and number, and from scikit-learn's kind of random state."""

import numpy as np
import pytest

from moew._util.seeds import draw_seed, generator, integer_seed
from moew.exceptions import InvalidInputError


def test_a_stream_belongs_to_its_purpose_and_number():
    first = generator(0, "model", 1).random(3)
    np.testing.assert_array_equal(first, generator(0, "model", 1).random(3))
    others = [generator(1, "model", 1), generator(0, "alpha", 1), generator(0, "model", 2)]
    assert all(not np.array_equal(first, other.random(3)) for other in others)
    assert 0 <= integer_seed(0, "model", 1) < 2**31


def test_an_integer_is_the_seed_and_a_generator_is_drawn_from():
    assert draw_seed(7) == draw_seed(np.int64(7)) == 7
    state = np.random.RandomState(0)
    expected = np.random.RandomState(0).randint(np.iinfo(np.int32).max, size=2)
    assert [draw_seed(state), draw_seed(state)] == expected.tolist()
    np.random.seed(3)  # noqa: NPY002  (None is NumPy's own generator, as for scikit-learn's estimators)
    drawn = draw_seed(None)
    np.random.seed(3)  # noqa: NPY002
    assert draw_seed(None) == drawn
    with pytest.raises(InvalidInputError, match="random_state must not be negative") as caught:
        draw_seed(-1)
    assert caught.value.argument == "random_state"
