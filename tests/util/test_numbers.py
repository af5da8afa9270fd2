"""Numbers as people read them."""

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moew._util.numbers import alike, count, number, percent, signed, with_margin


def test_scores_have_four_digits_and_a_true_minus():
    assert number(0.123456) == "0.1235"
    assert number(-1.5) == "−1.5"
    assert number(12.3456, 2) == "12"
    assert number(0) == number(-0.0) == "0"
    assert signed(0.5) == "+0.5"
    assert signed(-0.25) == "−0.25"


def test_money_is_written_out():
    assert number(1370.0) == "1,370"
    assert signed(1368.4) == "+1,368"
    assert number(-1234567.8) == "−1,234,568"
    assert number(12345.67, 2) == "12,346"  # digits before the point are not rounded away
    assert [number(1e15), number(0.00012), number(1.5e-7)] == ["1e+15", "0.00012", "1.5e−07"]


def test_digits_end_where_those_of_the_error_do():
    assert number(0.85234, error=0.0312) == "0.852"
    assert number(0.5, error=0.0312) == "0.500"
    assert number(1374.2, error=213.0) == "1,370"
    assert number(1374.2, error=2.13) == "1,374.2"
    assert number(0.85234, error=0.0996) == "0.85"  # ± 0.10
    assert number(0.85234, error=0.0) == number(0.85234, error=math.nan) == "0.8523"
    assert with_margin(0.85234, 0.0312) == "0.852 ± 0.031"
    assert with_margin(1374.2, 213.0, sign=True) == "+1,370 ± 210"
    assert with_margin(0.85234, 0.0996) == "0.85 ± 0.10"
    assert with_margin(0.25, 0.0) == "0.25 ± 0"
    assert with_margin(0.25, None) == with_margin(0.25, math.nan) == "0.25"
    assert with_margin(None, 0.1) == "–"


def test_a_number_that_is_missing_is_a_dash():
    for missing in (None, math.nan):
        assert number(missing) == signed(missing) == percent(missing) == "–"
        assert alike([missing, 1.5]) == ["–", "1.500"]
    assert alike([math.inf, 1.5]) == ["inf", "1.500"]


def test_numbers_beside_each_other_have_as_many_decimals():
    assert alike([0.5, 0.12345]) == ["0.5000", "0.1235"]
    assert alike([1234.5, 2.0]) == ["1,234", "2"]
    assert alike([1.0, 20.0]) == ["1", "20"]
    assert alike([0.5, 0.12345], errors=[0.021, None, 0.0, 0.4]) == ["0.500", "0.123"]
    assert alike([15374.2, 98.0], errors=[213.0]) == ["15,370", "100"]
    assert alike([0.5, 0.12345], errors=[1e-12]) == ["0.500000", "0.123450"]
    assert alike([1e-9, 2e-9]) == ["1e−09", "2e−09"]


@given(st.floats(-1e11, 1e11), st.integers(1, 6))
def test_what_is_written_is_the_number_to_so_many_digits(value, digits):
    read = float(number(value, digits).replace(",", "").replace("−", "-"))
    # An oracle: half a unit of the last digit, and never more than half a whole one.
    unit = 10.0 ** (math.floor(math.log10(abs(value))) - digits + 1) if value else 1.0
    assert abs(read - value) <= 0.5000001 * min(unit, 1.0) if abs(value) >= 1e-4 else abs(value) <= 1e-4


@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6))
def test_a_margin_has_two_digits_and_the_number_as_many_decimals(value, margin):
    shown, beside = with_margin(value, margin).split(" ± ")
    decimals = [len(part.partition(".")[2]) for part in (shown, beside)]
    if abs(value) >= 1e-4 and margin >= 1e-4:
        assert decimals[0] == decimals[1]
        assert 1 <= len(re.sub(r"[,.]", "", beside).strip("0")) <= 2
        assert abs(float(beside.replace(",", "")) - margin) <= 0.0500001 * margin


@pytest.mark.parametrize(("share", "words"), [(0.1234, "12.3 %"), (-0.5, "−50 %"), (12.5, "1,250 %")])
def test_shares_are_percents(share, words):
    assert percent(share) == words


def test_things_are_counted_in_words():
    assert [count(1, "row"), count(1200, "row"), count(2, "class")] == ["1 row", "1,200 rows", "2 classes"]
