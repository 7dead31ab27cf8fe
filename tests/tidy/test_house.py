"""Figures of the code's structure do not grow: whoever makes one smaller writes the new number here."""

from __future__ import annotations

import importlib.machinery
import importlib.util

import pytest

from tests.rules import ROOT

_MOST = {
    "modules over 600 lines": 1,
    "functions over 6 parameters": 26,
    "classes with more than 15 fields changed outside __init__": 0,
    "class names for more than one class": 5,
    "file names for more than one module": 26,
    "file names that say nothing in their folder": 5,
    "riddling names of classes and modules": 4,
    "docstrings that begin with a question word": 0,
    "attribute and argument lines under five words": 0,
}


def _figures() -> dict[str, list[str]]:
    loader = importlib.machinery.SourceFileLoader("figures", str(ROOT / "tools/house-figures"))
    spec = importlib.util.spec_from_loader("figures", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return dict(module.House(ROOT / "src/binlane").figures())


@pytest.fixture(scope="module")
def figures() -> dict[str, list[str]]:
    """The places that each figure counts."""
    return _figures()


@pytest.mark.parametrize("name", _MOST)
def test_no_figure_grows(name: str, figures: dict[str, list[str]]) -> None:
    places = figures[name]
    assert len(places) <= _MOST[name], f"{name}: `tools/house-figures --list` names them"
    assert len(places) > 0.98 * _MOST[name] - 2, f"{name}: write {len(places)} here"


def test_all_figures_are_held(figures: dict[str, list[str]]) -> None:
    assert set(figures) == set(_MOST)
