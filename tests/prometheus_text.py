"""Prometheus' text format as strictly as a server reads it.

Source: prometheus.io/docs/instrumenting/exposition_formats, and the naming rules beside it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

_NAME: Final = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_LABEL_NAME: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
_LABEL: Final = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(?:,|$)')
_SAMPLE: Final = re.compile(r"(?P<name>[a-zA-Z_:][\w:]*)(?:\{(?P<labels>.*)\})? (?P<value>\S+)")
_ESCAPES: Final = {r"\\": "\\", r"\"": '"', r"\n": "\n"}


@dataclass(frozen=True)
class MetricSample:
    """One line."""

    name: str
    labels: dict[str, str]
    value: float


@dataclass
class MetricsText:
    """What a text says.

    Attributes:
        types: Type by name.
        samples: In order.
    """

    types: dict[str, str] = field(default_factory=dict)
    samples: list[MetricSample] = field(default_factory=list)


def read_metrics(text: str) -> MetricsText:
    """Read a text.

    Raises:
        AssertionError: If something in it is wrong, doubled, out of place, or named against the rules.
    """
    assert text.endswith("\n")
    found, helped, current = MetricsText(), set(), ""
    seen: set[tuple[str, tuple[tuple[str, str], ...]]] = set()
    for line in text.splitlines():
        if line.startswith("# HELP "):
            name, _, words = line.removeprefix("# HELP ").partition(" ")
            assert _NAME.fullmatch(name), line
            assert words, line
            assert name not in helped, f"{name} is told twice"
            helped.add(name)
            current = name
        elif line.startswith("# TYPE "):
            name, kind = line.removeprefix("# TYPE ").split(" ")
            assert name == current, f"{line} is not behind its HELP"
            assert kind in {"counter", "gauge"}, line
            assert (kind == "counter") == name.endswith("_total"), line
            found.types[name] = kind
        else:
            sample = _sample(line)
            assert sample.name == current, f"{line} stands among others"
            key = sample.name, tuple(sorted(sample.labels.items()))
            assert key not in seen, f"{line} is there twice"
            seen.add(key)
            found.samples.append(sample)
    assert {sample.name for sample in found.samples} == set(found.types) == helped
    return found


def _sample(line: str) -> MetricSample:
    match = _SAMPLE.fullmatch(line)
    assert match, f"{line!r} is no sample"
    labels, rest = {}, match["labels"] or ""
    while rest:
        label = _LABEL.match(rest)
        assert label, f"{rest!r} is no label"
        assert _LABEL_NAME.fullmatch(label[1])
        assert label[1] not in labels
        labels[label[1]] = re.sub(r"\\.", lambda found: _ESCAPES[found[0]], label[2])
        rest = rest[label.end() :]
    return MetricSample(match["name"], labels, float(match["value"]))
