"""Changes that a session had logged as statements are told of in every binlog, by both paths."""

from __future__ import annotations

from pathlib import Path

import pytest

from binlane.log.kernels.load import is_compiled
from tests.routed_files import routed, written

TOLD = "change logged as a statement"
SCOPES = ("LOG ALL", "LOG(nowhere)", "LOG(shop)", "IGNORE(shop)")
paths = pytest.mark.parametrize(
    "uses_kernels",
    [
        False,
        pytest.param(
            True,
            marks=pytest.mark.skipif(
                not is_compiled(("copying", "scan")), reason="the kernels are not compiled here"
            ),
        ),
    ],
)


@paths
@pytest.mark.parametrize(
    "name",
    ["md1011_format_statement", "my97_format_statement", "md1011_format_mixed", "my97_compressed"],
)
def test_statements_are_told_in_every_binlog(
    name: str, tmp_path: Path, *, uses_kernels: bool
) -> None:
    files = written(name, tmp_path / "in")
    counts = routed(files, tmp_path / "out", *SCOPES, uses_kernels=uses_kernels).counts
    told = {binlog: each.omissions[TOLD] for binlog, each in counts.items()}
    assert told["b1"] > 0
    # Groups that an INCIDENT stands for tell of theirs as well.
    assert len(set(told.values())) == 1


@paths
@pytest.mark.parametrize(
    "name", ["md1011_txn", "md1011_ddl", "md1011_stored", "my97_txn", "my97_ddl"]
)
def test_a_log_of_rows_has_none(name: str, tmp_path: Path, *, uses_kernels: bool) -> None:
    files = written(name, tmp_path / "in")
    counts = routed(files, tmp_path / "out", *SCOPES, uses_kernels=uses_kernels).counts
    assert all(not each.omissions[TOLD] for each in counts.values())
