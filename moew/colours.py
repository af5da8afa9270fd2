"""Colours that colour-blind people can tell apart: Okabe and Ito's for things, viridis for numbers."""

from __future__ import annotations

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")

# matplotlib's viridis at nine even steps.
_VIRIDIS = (
    (68, 1, 84),
    (71, 44, 122),
    (59, 81, 139),
    (44, 113, 142),
    (33, 144, 141),
    (39, 173, 129),
    (92, 200, 99),
    (170, 220, 50),
    (253, 231, 37),
)


def viridis(share: float) -> str:
    """The colour at `share`, from 0 (dark) to 1 (bright), as #rrggbb."""
    place = min(max(share, 0.0), 1.0) * (len(_VIRIDIS) - 1)
    low = min(int(place), len(_VIRIDIS) - 2)
    part = place - low
    mixed = [round(a + part * (b - a)) for a, b in zip(_VIRIDIS[low], _VIRIDIS[low + 1], strict=True)]
    return "#" + "".join(f"{value:02x}" for value in mixed)
