"""Lines of Prometheus' text format."""

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
        return f"{name}{{{labels}}} {self.value}" if labels else f"{name} {self.value}"


Metric = tuple[str, str, str, Iterable[Sample]]
"""Name, type, help and samples."""


def render(metrics: Iterable[Metric]) -> str:
    """The text of some metrics; one without samples is left out."""
    lines: list[str] = []
    for name, kind, text, samples in metrics:
        found = [sample.render(name) for sample in samples]
        if found:
            lines += [f"# HELP {name} {text}.", f"# TYPE {name} {kind}", *found]
    return "\n".join([*lines, ""])


def _escaped(label: str) -> str:
    whole = label.encode("utf-8", "replace").decode()
    return whole.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
