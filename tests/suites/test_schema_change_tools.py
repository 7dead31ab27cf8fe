"""pt-online-schema-change beside a binlog of a single table, under clients that write it.

It is fetched while the test runs, so this is a slow one. gh-ost cannot be fetched by its module's
proxy; `tests/rows/test_schema_changes.py` makes its statements.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.schema_changes import ALTERED, Shop, Writers, shop
from tests.suites.packages import debian
from tests.suites.programs import needed

_VERSION = "3.2.1-1"
_REFUSED = "11314"
_CLIENTS = 6
_TIMEOUT_S = 300


@pytest.fixture(scope="module")
def tool() -> Path:
    """The folder that the tool and what it needs are unpacked in."""
    needed("apt-get")
    return debian("percona-toolkit", "libdbi-perl", "libdbd-mysql-perl", version=_VERSION)


def changed(tool: Path, port: int) -> subprocess.CompletedProcess[str]:
    """Let the tool alter `shop.orders` at a port."""
    (binary,) = tool.glob("usr/lib/*/perl5/*/DBD/mysql.pm")
    folders = binary.parents[1], tool / "usr/share/perl5"
    return subprocess.run(
        [
            *(needed("perl"), str(tool / "usr/bin/pt-online-schema-change")),
            *("--alter", ALTERED, "--execute", "--chunk-size=200"),
            *("--recursion-method=none", "--no-version-check"),
            f"h=127.0.0.1,P={port},u=root,D=shop,t=orders",
        ],
        env=os.environ | {"PERL5LIB": ":".join(map(str, folders))},
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_S,
        check=False,
    )


def check_swapped(orders: Shop, tool: Path, *, writers_port: int, tool_port: int) -> Writers:
    with Writers(writers_port, count=_CLIENTS) as writers:
        done = changed(tool, tool_port)
    assert done.returncode == 0, done.stdout + done.stderr
    assert writers.done
    assert not any(_REFUSED in error for error in writers.errors)
    orders.check_equal()
    assert orders.incidents() == ()
    return writers


@pytest.mark.slow
@pytest.mark.parametrize("logging_mode", ["ROW", "MIXED", "STATEMENT"])
@pytest.mark.parametrize("flavor", ["mariadb", "mysql"])
def test_the_tool_and_clients_at_the_source(
    tool: Path, tmp_path: Path, flavor: str, logging_mode: str
) -> None:
    with shop(tmp_path, flavor, logging_mode) as orders:
        port = orders.source.port
        check_swapped(orders, tool, writers_port=port, tool_port=port)
        told = "trigger `shop`.`pt_osc_shop_orders_{}` of `shop`.`orders` in "
        assert all(told.format(word) in orders.serve.log for word in ("ins", "upd", "del"))


@pytest.mark.slow
@pytest.mark.parametrize("logging_mode", ["ROW", "MIXED", "STATEMENT"])
@pytest.mark.parametrize("flavor", ["mariadb", "mysql"])
@pytest.mark.parametrize("is_tool_beside", [False, True])
def test_the_tool_while_clients_write_through_the_port(
    tool: Path, tmp_path: Path, flavor: str, logging_mode: str, *, is_tool_beside: bool
) -> None:
    with shop(tmp_path, flavor, logging_mode) as orders:
        port = orders.source.port if is_tool_beside else orders.serve.port
        check_swapped(orders, tool, writers_port=orders.serve.port, tool_port=port)
        told = "trigger `shop`.`pt_osc_shop_orders_{}` of `shop`.`orders` in "
        assert all(told.format(word) in orders.serve.log for word in ("ins", "upd", "del"))
        if logging_mode == "STATEMENT":
            # The triggers are gone, so that texts are texts again.
            last = "UPDATE shop.orders SET n = 777777 WHERE id = 1"
            orders.serve.execute_as_root(last)
            orders.check_equal()
            assert last.encode() in orders.serve.binlog_bytes("orders")
