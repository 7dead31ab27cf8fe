"""What is shipped for Grafana and Prometheus asks for what /metrics has, and for nothing else."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from binlane.live.web.metrics import render_metrics
from binlane.live.web.status_values import CheckStatus
from tests.prometheus_text import MetricSample, read_metrics
from tests.rules import ROOT
from tests.shown import BINLOG, status

DASHBOARD = ROOT / "packaging/grafana/binlane.json"
ALERTS = ROOT / "packaging/prometheus/binlane-alerts.yml"
# What Prometheus itself adds to each target.
OF_PROMETHEUS = {"up"}
LABELS_OF_PROMETHEUS = {"instance", "job"}
SELECTOR = re.compile(r"\b(up|(?:binlane|process)_[a-z_]+)\b(?:\{([^}]*)\})?")


def rendered() -> list[MetricSample]:
    check = CheckStatus(table="shop.t", server="source", finding="equal", text="", at_s=1.0)
    shown = status(replace(BINLOG, archived_files=1, archive_pending_files=0, checks=[check]))
    return read_metrics(render_metrics(shown)).samples


def panels() -> list[dict[str, Any]]:
    found = json.loads(DASHBOARD.read_text())["panels"]
    return [panel for panel in found if panel["type"] != "row"]


def expressions() -> Iterator[str]:
    dashboard = json.loads(DASHBOARD.read_text())
    for panel in panels():
        for target in panel["targets"]:
            yield target["expr"]
    for variable in dashboard["templating"]["list"]:
        if variable["type"] == "query":
            yield variable["query"]["query"]
    yield from re.findall(r"^ +expr: (.+)$", ALERTS.read_text(), re.MULTILINE)


@pytest.mark.parametrize("expression", sorted(set(expressions())))
def test_every_expression_asks_for_what_is_there(expression: str) -> None:
    there: dict[str, set[str]] = {name: set() for name in OF_PROMETHEUS}
    for sample in rendered():
        there.setdefault(sample.name, set()).update(sample.labels)
    selectors = SELECTOR.findall(expression)
    assert selectors
    for name, conditions in selectors:
        assert name in there
        labels = set(re.findall(r"([a-z]+)!?[=~]", conditions))
        assert labels <= there[name] | LABELS_OF_PROMETHEUS, name


def test_every_panel_says_what_it_shows_and_in_which_unit() -> None:
    assert panels()
    for panel in panels():
        assert panel["title"]
        assert panel["description"]
        assert panel["fieldConfig"]["defaults"]["unit"]
    ids = [panel["id"] for panel in panels()]
    assert len(ids) == len(set(ids))
    names = {each["name"] for each in json.loads(DASHBOARD.read_text())["templating"]["list"]}
    assert {"instance", "binlog"} <= names


def test_every_metric_of_the_port_and_of_binlogs_is_documented() -> None:
    page = (ROOT / "docs/reference/http.md").read_text()
    assert sorted({one.name for one in rendered() if f"`{one.name}`" not in page}) == []


def test_prometheus_takes_the_alerts() -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("there is no promtool here: apt-get install prometheus")
    subprocess.run([promtool, "check", "rules", ALERTS], check=True, stdout=subprocess.DEVNULL)
    text = render_metrics(status(BINLOG))
    subprocess.run([promtool, "check", "metrics"], input=text.encode(), check=True)
