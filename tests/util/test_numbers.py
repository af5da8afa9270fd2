"""Numbers as people read them."""

import math

from moew._util.numbers import alike, count, number, percent, signed


def test_scores_have_four_digits_and_a_true_minus():
    assert number(0.123456) == "0.1235"
    assert number(-1.5) == "−1.5"
    assert number(12.3456, 2) == "12"
    assert signed(0.5) == "+0.5"
    assert signed(-0.25) == "−0.25"


def test_a_number_that_is_missing_is_a_dash():
    for missing in (None, math.nan):
        assert number(missing) == signed(missing) == percent(missing) == "–"
        assert alike([missing, 1.5]) == ["–", "1.500"]


def test_numbers_beside_each_other_have_as_many_decimals():
    assert alike([0.5, 0.12345]) == ["0.5000", "0.1235"]
    assert alike([1234.5, 2.0]) == ["1,234", "2"]
    assert alike([1.0, 20.0]) == ["1", "20"]


def test_things_are_counted_in_words():
    assert [count(1, "row"), count(1200, "row"), count(2, "class")] == ["1 row", "1,200 rows", "2 classes"]
    assert percent(0.1234) == "12.3 %"
