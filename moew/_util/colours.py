"""Colours that colour-blind people can tell apart: Okabe and Ito's for categories, viridis for numbers."""

from __future__ import annotations

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")

# matplotlib's viridis at 17 even steps.
_VIRIDIS = bytes.fromhex(
    "440154 48186a 472d7b 424086 3b528b 33638d 2c728e 26828e 21918c 1fa088 28ae80 3fbc73 5ec962 84d44b "
    "addc30 d8e219 fde725"
)


def viridis(share: float) -> str:
    """The colour at `share`, from 0 (dark) to 1 (bright), as #rrggbb."""
    place = min(max(share, 0.0), 1.0) * (len(_VIRIDIS) // 3 - 1)
    low = min(int(place), len(_VIRIDIS) // 3 - 2)
    part = place - low
    ends = _VIRIDIS[3 * low : 3 * low + 3], _VIRIDIS[3 * low + 3 : 3 * low + 6]
    return "#" + bytes(round(a + part * (b - a)) for a, b in zip(*ends, strict=True)).hex()
