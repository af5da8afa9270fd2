"""Draw SVG pictures in the colours of the page's style sheet, light or dark."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from html import escape

WIDTH = 400.0  # units of every picture: a phone's width, so that letters stay readable there
LETTER = 7.5  # units that a letter of a picture takes, on average
_RIGHT, _TOP = WIDTH - 12, 30.0  # where a plot ends and begins
_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
Point = tuple[float, float]


class Picture:
    """A picture to draw on, with a name and a description for those who cannot see it.

    Places are in units of the picture, and where there is an axis below or at the left, numbers on it.
    """

    def __init__(self, name: str, title: str, description: str, height: float) -> None:
        self.name, self.title, self.description, self.height = name, title, description, height
        self.parts: list[str] = []
        self.x: Callable[[float], float] = float
        self.y: Callable[[float], float] = float
        self.top, self.bottom, self.left, self.right = 0.0, height, 0.0, WIDTH

    def __str__(self) -> str:
        named = f"{self.name}-title {self.name}-text"
        return (
            f'<svg class="plot" id="{self.name}" viewBox="0 0 {WIDTH:g} {self.height:g}" role="img" '
            f'aria-labelledby="{named}"><title id="{self.name}-title">{escape(self.title)}</title>'
            f'<desc id="{self.name}-text">{escape(self.description)}</desc>{"".join(self.parts)}</svg>'
        )

    def axis_below(
        self, scale: Scale, y: float, top: float, title: str = "", about: int = 5, grid: bool = True
    ) -> None:
        """Ticks under y with thin lines up to `top`, and a title below."""
        self.x, self.top, self.bottom = scale, top, y
        for value, words in apart(scale, about):
            if grid:
                self.upright(value, "grid")
            self.text(scale(value), y + 15, words, "tick", "middle")
        self.text((scale.start + scale.end) / 2, y + 32, title, "axis", "middle")

    def axis_left(self, scale: Scale, x: float, right: float, title: str = "", grid: bool = True) -> None:
        """Ticks left of x with thin lines to `right`, and a title above."""
        self.y, self.left, self.right = scale, x, right
        for value, words in scale.ticks():
            if grid:
                self.level(value, "grid")
            self.text(x - 6, scale(value) + 4, words, "tick", "end")
        self.text(6, 14, title, "axis")

    def add(self, markup: str) -> None:
        """Markup as it is; whatever it holds of the user's must be escaped."""
        self.parts.append(markup)

    def upright(self, x: float, style: str) -> None:
        """A line from top to bottom."""
        self._path([(self.x(x), self.top), (self.x(x), self.bottom)], style)

    def level(self, y: float, style: str) -> None:
        """A line from left to right."""
        self._path([(self.left, self.y(y)), (self.right, self.y(y))], style)

    def lines(self, points: Sequence[Point], style: str, end: str = "") -> None:
        """Lines from point to point; with `end` "Z" they go round an area."""
        self._path([(self.x(x), self.y(y)) for x, y in points], style, end)

    def bar(self, x: Point, y: Point, style: str, hint: str = "") -> None:
        """A bar from x[0] to x[1] and from y[0] to y[1]."""
        left, right = sorted(map(self.x, x))
        top, bottom = sorted(map(self.y, y))
        size = f'width="{right - left:.1f}" height="{bottom - top:.1f}"'
        self.add(f'<rect class="{style}" x="{left:.1f}" y="{top:.1f}" {size} rx="1.5">{_hint(hint)}</rect>')

    def dot(
        self, x: float, y: float, radius: float, style: str, hint: str = "", fill: str | None = None
    ) -> None:
        colour = "" if fill is None else f' fill="{fill}"'
        place = f'cx="{self.x(x):.1f}" cy="{self.y(y):.1f}" r="{radius:g}"'
        self.add(f'<circle class="{style}" {place}{colour}>{_hint(hint)}</circle>')

    def diamond(self, x: float, y: float, radius: float, style: str, hint: str = "") -> None:
        self._around(x, y, [radius] * 4, style, hint)

    def star(self, x: float, y: float, hint: str, style: str = "winner") -> None:
        self._around(x, y, [9, 3.8] * 5, style, hint)

    def text(self, x: float, y: float, words: str, style: str = "label", anchor: str = "start") -> None:
        """Words at a place in units of the picture."""
        place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
        self.add(f'<text class="{style}" {place}>{escape(words)}</text>' if words else "")

    def name_of(self, x: float, y: float, words: str, shown: str) -> None:
        """What is shown of words that end at x; the whole shows when pointed at."""
        place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="end"'
        self.add(f'<text class="label" {place}>{_hint(words)}{escape(shown)}</text>')

    def _around(self, x: float, y: float, radii: Sequence[float], style: str, hint: str) -> None:
        """Corners in equal angles around a place, the first above it."""
        turn = 2 * math.pi / len(radii)
        corners = [
            (self.x(x) + r * math.sin(k * turn), self.y(y) - r * math.cos(k * turn))
            for k, r in enumerate(radii)
        ]
        self._path(corners, style, "Z", hint)

    def _path(self, points: Sequence[Point], style: str, end: str = "", hint: str = "") -> None:
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
        self.add(f'<path class="{style}" d="M{path}{end}">{_hint(hint)}</path>')


def plot(
    name: str, title: str, description: str, height: float, x: Point, y: Point, axes: tuple[str, str]
) -> Picture:
    """A picture with two axes, of x from x[0] to x[1] and of y, and what they are called."""
    picture = Picture(name, title, description, height)
    bottom = height - 50
    up = Scale(*y, bottom, _TOP)
    left = max(56.0, 14 + LETTER * max((len(words) for _, words in up.ticks()), default=0))
    picture.axis_left(up, left, _RIGHT, axes[1])
    picture.axis_below(Scale(*x, left, _RIGHT), bottom, _TOP, axes[0])
    return picture


def shortened(names: Sequence[str], longest: int) -> list[str]:
    """Names of at most so many characters, cut where they can still be told apart if that can be."""
    long = [name for name in names if len(name) > longest]
    start = _shared_words(long)
    end = _shared_words([name[start:][::-1] for name in long])

    def without_shared(name: str) -> str:
        core = "…" * (start > 0) + name[start : len(name) - end] + "…" * (end > 0)
        return core if len(core) <= longest else middle_cut(core)

    def middle_cut(name: str) -> str:
        tail = (longest - 1) // 2
        return f"{name[: longest - 1 - tail]}…{name[-tail:]}"

    ways: list[Callable[[str], str]] = [
        without_shared,
        middle_cut,
        lambda name: f"{name[: longest - 1]}…",
        lambda name: f"…{name[1 - longest :]}",
    ]
    tried = [[name if len(name) <= longest else cut(name) for name in names] for cut in ways]
    return max(tried, key=lambda shown: len(set(shown)))  # the first of the best


def _shared_words(names: Sequence[str]) -> int:
    """How many characters of whole words all names begin with; 0 where there are no two."""
    if len(names) < 2:
        return 0
    first, last = min(names), max(names)
    alike = next((k for k, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))
    return max(first.rfind(mark, 0, alike) for mark in " _/") + 1


class Scale:
    """Numbers to places on the paper, with round ticks."""

    def __init__(self, low: float, high: float, start: float, end: float) -> None:
        if not high > low:
            pad = abs(low) * 0.05 or 0.5
            low, high = low - pad, high + pad
        self.low, self.high, self.start, self.end = low, high, start, end

    def __call__(self, value: float) -> float:
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def ticks(self, about: int = 5) -> list[tuple[float, str]]:
        """Round numbers within, and how they are written."""
        rough = (self.high - self.low) / about
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(s * power for s in _STEPS if s * power >= rough * 0.999)
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        values = [k * step for k in range(first, last + 1)]
        return [(value, tick_text(value, step)) for value in values]


def tick_text(value: float, step: float) -> str:
    """As many digits as tell neighbouring ticks apart."""
    if value == 0:
        return "0"
    if abs(value) >= 1e9 or step < 1e-5:
        apart = math.floor(math.log10(abs(value))) - math.floor(math.log10(step)) + 2
        return f"{value:.{max(3, apart)}g}".replace("-", "−")
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    if abs(step * 10**digits - round(step * 10**digits)) > 1e-6:
        digits += 1  # a step of 2.5 or 0.25
    return f"{value:,.{digits}f}".replace("-", "−")


def apart(scale: Scale, about: int) -> list[tuple[float, str]]:
    """The ticks of a horizontal scale, so few that their texts do not run into each other."""
    for n in range(about, 0, -1):
        ticks = scale.ticks(n)
        widest = max((len(words) for _, words in ticks), default=0) * LETTER + 8
        if len(ticks) < 2 or abs(scale(ticks[1][0]) - scale(ticks[0][0])) >= widest:
            return ticks
    return ticks[:1]


def padded(values: Sequence[float], share: float = 0.06) -> tuple[float, float]:
    """Lowest and highest, with some room."""
    low, high = min(values), max(values)
    room = (high - low) * share or abs(high) * share or 0.5
    return low - room, high + room


def _hint(words: str) -> str:
    return f"<title>{escape(words)}</title>" if words else ""
