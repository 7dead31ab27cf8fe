"""DDL of all kinds among rows: what is judged once a text is what the reference makes of each."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from binlane.binlogs.route.route_record import RECORD_FILE
from binlane.log.kernels.load import is_compiled
from tests.ddl_logs import DdlLog
from tests.routed_files import outputs, routed

_SCOPES = (
    *("LOG ALL", "LOG(shop)", "LOG(crm)", "IGNORE(shop.t1)", "LOG(shop.t1, crm.c_2, shop.acct)"),
    *("LOG(nothing)", "LOG(shop, crm), ROW_IMAGE=MINIMAL"),
)
pytestmark = pytest.mark.skipif(
    not is_compiled(("copying", "scan")), reason="the kernels are not compiled here"
)


def _marks(out: Path) -> dict[str, Any]:
    """What is remembered of each binlog."""
    marks: dict[str, Any] = json.loads((out / RECORD_FILE).read_text())
    return {name: one["memory"] for name, one in marks["binlogs"].items()}


@pytest.mark.parametrize("is_plain", [False, True])
@pytest.mark.parametrize("rows", [0.0, 0.4])
@pytest.mark.parametrize("name", ["md1011_txn", "my97_txn", "md1011_ddl", "my97_compressed"])
def test_both_paths_make_the_same_of_ddl(
    name: str,
    rows: float,
    is_plain: bool,  # noqa: FBT001  # a parameter of the test
    tmp_path: Path,
) -> None:
    _check(DdlLog(name, 1, rows, is_plain=is_plain).written(100), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("is_plain", [False, True])
@pytest.mark.parametrize("rows", [0.0, 0.1, 0.4, 0.8])
@pytest.mark.parametrize("seed", range(2, 6))
@pytest.mark.parametrize("name", ["md1011_txn", "my97_txn", "md1011_ddl", "my97_compressed"])
def test_both_paths_make_the_same_of_much_ddl(
    name: str,
    seed: int,
    rows: float,
    is_plain: bool,  # noqa: FBT001  # a parameter of the test
    tmp_path: Path,
) -> None:
    _check(DdlLog(name, seed, rows, is_plain=is_plain).written(300), tmp_path)


def _check(data: bytes, folder: Path) -> None:
    path = folder / "binlog.000001"
    path.write_bytes(data)
    fields: tuple[dict[str, Any], ...] = ({"uses_kernels": False}, {}, {"window_bytes": 4096})
    made = []
    for number, each in enumerate(fields):
        out = folder / f"{number}"
        report = routed((str(path),), out, *_SCOPES, max_binlog_size=16384, **each)
        made.append((_marks(out), report.counts, outputs(out)))
    assert made[1] == made[0]
    assert made[2] == made[0]
