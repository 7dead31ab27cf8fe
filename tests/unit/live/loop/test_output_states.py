"""What SHOW BINLOGS says of a binlog."""

from __future__ import annotations

from pathlib import Path

from binlane.binlogs.store.store import Store
from binlane.live.loop.outputs import Output
from binlane.positions import GtidPosition
from binlane.statements.scope.definition import Definition
from binlane.statements.scope.scope import Scope
from binlane.statements.sql.servers import LoggingMode
from tests.groups import source_format


def test_a_table_that_comes_in_is_told(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        binlog = store.create_binlog(
            Definition(
                name="orders",
                scope=Scope.nothing(),
                logging_mode=LoggingMode.ROW,
                log_id=store.next_log_id(),
            ),
            start=GtidPosition(),
            format_description=source_format(),
            server_id=1,
            timestamp=1_700_000_000,
        )
        output = Output.of(binlog, frozenset())
        output.attach(str, is_main=True)
        assert str(output.state) == "OPEN"
        output.coming = "`shop`.`orders` comes in, its history is read"
        assert str(output.state) == "OPEN: `shop`.`orders` comes in, its history is read"
