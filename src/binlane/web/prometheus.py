"""Prometheus' text format."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

METRICS_CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Sample:
    """One line of a metric."""

    value: float
    labels: Mapping[str, str] = field(default_factory=dict)

    def render(self, name: str) -> str:
        """The line; a label's backslashes, quotes and line ends are escaped."""
        labels = ",".join(f'{key}="{_escaped(text)}"' for key, text in self.labels.items())
        return (
            f"binlane_{name}{{{labels}}} {self.value}" if labels else f"binlane_{name} {self.value}"
        )


Metric = tuple[str, str, str, Iterable[Sample]]
"""Name without prefix, type, help and samples."""


def render(metrics: Iterable[Metric]) -> str:
    """The text of some metrics."""
    lines: list[str] = []
    for name, kind, text, samples in metrics:
        lines += [f"# HELP binlane_{name} {text}.", f"# TYPE binlane_{name} {kind}"]
        lines += [sample.render(name) for sample in samples]
    return "\n".join([*lines, ""])


def _escaped(label: str) -> str:
    return label.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
