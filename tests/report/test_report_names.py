"""Names on the report's pictures: short enough, and still told apart."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moew.report._charts import Interval, intervals
from moew.report._svg import shortened


@pytest.mark.parametrize(
    ("names", "shown"),
    [
        (["cat", "dog"], ["cat", "dog"]),
        (["department of ham", "department of eggs"], ["…ham", "…eggs"]),
        (["north of the river", "south of the river"], ["north…", "south…"]),
        (["kind 1 of all things", "kind 2 of all things", "none"], ["…1…", "…2…", "none"]),
        (["incomprehensibilities"], ["incomp…ities"]),
        (["aaaaaaaaaaaaaaab", "aaaaaaaaaaaaaaac"], ["aaaaaa…aaaab", "aaaaaa…aaaac"]),
        (["Sector01Manufacturing", "Sector02Manufacturing"], ["Sector01Man…", "Sector02Man…"]),
        (["-1860 to -1520", "-1520 to -1000"], ["-1860 …-1520", "-1520 …-1000"]),
        (["the same long name", "the same long name"], ["…name", "…name"]),
    ],
)
def test_names_are_shortened_where_they_do_not_differ(names, shown):
    assert shortened(names, 12) == shown


@given(st.lists(st.text("ab _-…", max_size=30), max_size=6), st.integers(5, 20))
def test_no_name_is_too_long_and_short_ones_stay(names, longest):
    shown = shortened(names, longest)
    assert all(len(short) <= longest for short in shown)
    assert all(a == b for a, b in zip(names, shown, strict=True) if len(a) <= longest)


def test_intervals_end_at_the_bounds_of_the_metric():
    rows = [Interval("moew", 0.9, 0.3, style="a")]

    def highest(bounds):
        picture = intervals("x", "Scores", rows, "← better, error", bounds)
        return max(float(tick) for tick in re.findall(r'class="tick"[^>]*>([\d.]+)<', picture))

    assert highest(None) > 1.1 and highest((0.0, None)) > 1.1
    assert highest((0.0, 1.0)) == 1.0
