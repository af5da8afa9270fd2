"""Colours that colour-blind people can tell apart: Okabe and Ito's for categories, viridis for numbers."""

from __future__ import annotations

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")

# matplotlib's viridis at 17 even steps.
_VIRIDIS = (
    (68, 1, 84),
    (72, 24, 106),
    (71, 45, 123),
    (66, 64, 134),
    (59, 82, 139),
    (51, 99, 141),
    (44, 114, 142),
    (38, 130, 142),
    (33, 145, 140),
    (31, 160, 136),
    (40, 174, 128),
    (63, 188, 115),
    (94, 201, 98),
    (132, 212, 75),
    (173, 220, 48),
    (216, 226, 25),
    (253, 231, 37),
)


def viridis(share: float) -> str:
    """The colour at `share`, from 0 (dark) to 1 (bright), as #rrggbb."""
    place = min(max(share, 0.0), 1.0) * (len(_VIRIDIS) - 1)
    low = min(int(place), len(_VIRIDIS) - 2)
    part = place - low
    mixed = [round(a + part * (b - a)) for a, b in zip(_VIRIDIS[low], _VIRIDIS[low + 1], strict=True)]
    return "#" + "".join(f"{value:02x}" for value in mixed)
