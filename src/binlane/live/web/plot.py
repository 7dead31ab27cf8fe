"""A rate over the last hour as an image of its own, with a description in words; pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from binlane.live.web.history import STEP_S, WINDOW_S, Series
from binlane.live.web.html import text
from binlane.live.web.words import clock_text

_STEP: Final = 4
_HEIGHT: Final = 60
_BELOW: Final = _HEIGHT + 3  # the line along the bottom and both ends is not seen


def figure(
    what: str, series: Series, until_at_s: float, written: Callable[[float], str]
) -> Iterator[str]:
    """A plot with its caption and its axis.

    Args:
        what: The caption, such as `Event groups a second`.
        series: The rate over the last hour.
        until_at_s: The end of the series, in seconds since 1970.
        written: Writes a rate for people.
    """
    known = [value for value in series.values if value is not None]
    highest = max(known, default=0.0)
    now = "not known yet" if series.last is None else written(series.last)
    peak = series.peak
    most = ""
    if peak is not None and peak.rate:
        most = f", most {written(peak.rate)} at {clock_text(peak.at_s)}"
    yield "<figure>"
    yield f"<figcaption>{text(what)}: <strong>{text(now)}</strong> now{text(most)}</figcaption>"
    width = _STEP * len(series.values)
    label = f"{what} over the last hour: {now} now{most}; {_course(known, written)}"
    yield (
        f'<svg viewBox="0 0 {width} {_HEIGHT}" preserveAspectRatio="none" role="img"'
        f' aria-label="{text(label)}">'
    )
    unwatched = len(series.values) - len(known)
    if unwatched:
        yield f'<rect class="unwatched" width="{_STEP * unwatched}" height="{_HEIGHT}"/>'
    if known:
        path = _path(known, highest, _STEP * unwatched)
        yield f'<path class="rate" vector-effect="non-scaling-stroke" d="{path}"/>'
    begin = clock_text(until_at_s - WINDOW_S)
    scale = f"means of {STEP_S:g} s, up to {written(highest)}" if highest else ""
    yield "</svg>"
    yield (
        f'<div class="axis" aria-hidden="true"><span>{begin}</span><span>{text(scale)}</span>'
        f"<span>{clock_text(until_at_s)} UTC</span></div></figure>"
    )


def _course(known: Sequence[float], written: Callable[[float], str]) -> str:
    """The plot in words: means of its quarters of an hour, as far as they were watched."""
    quarter = round(WINDOW_S / 4 / STEP_S)
    parts = []
    for index in range(4):
        end = len(known) - quarter * index
        if end <= 0:
            break
        part = known[max(0, end - quarter) : end]
        when = (
            "the last 15 minutes"
            if not index
            else f"{15 * index} to {15 * (index + 1)} minutes ago"
        )
        parts.append(f"{written(sum(part) / len(part))} in {when}")
    return "mean " + ", ".join(parts) if parts else "nothing was watched yet"


def _path(values: Sequence[float], highest: float, left: int) -> str:
    """Steps from left to right, in whole units; equal ones are one step."""
    top = highest or 1.0
    heights = [round(_HEIGHT - (_HEIGHT - 2) * value / top) for value in values]
    parts = [f"M{left} {_BELOW}V{heights[0]}"]
    run = 0
    for height, following in zip(heights, [*heights[1:], None], strict=True):
        run += _STEP
        if following != height:
            parts.append(f"h{run}")
            run = 0
            if following is not None:
                parts.append(f"V{following}")
    return "".join([*parts, f"V{_BELOW}Z"])
