"""Calls that an INSERT and a group take do not grow: whoever makes them fewer writes the new number here."""

from __future__ import annotations

import asyncio
import importlib.machinery
import importlib.util

from tests.rules import ROOT

_MOST = {"known": (13, 37), "new": (99, 1476), "group": (18, 149)}
"""Modules and calls as `tools/call-counts` prints them; some calls depend on the order of hashes."""


def test_calls_do_not_grow() -> None:
    loader = importlib.machinery.SourceFileLoader("call_counts", str(ROOT / "tools/call-counts"))
    spec = importlib.util.spec_from_loader("call_counts", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    counted = asyncio.run(module.counted()) | {"group": module.routed()}
    for name, (modules, calls) in _MOST.items():
        found = counted[name]
        assert found.modules <= modules, f"{name}: `tools/call-counts --list` names them"
        assert found.counts.total() <= calls, f"{name}: `tools/call-counts --list` names them"
