"""A binlog of a running `serve` as the source of tables: its files, and its port."""

from __future__ import annotations

from pathlib import Path

import pytest

import binlane
from binlane.errors import BinlaneError
from binlane.tables.landing.landing import land
from binlane.tables.landing.verification import Lake, verify_lake
from tests.landed import current_rows
from tests.serve_process import ServeProcess, create_account
from tests.servers import ServerFactory, execute

_SMALL_FILES = "[binlog]\nmax_binlog_size = 8192\n"


@pytest.mark.parametrize("flavor", ["mariadb", pytest.param("mysql", marks=pytest.mark.slow)])
def test_a_served_binlog_is_landed_while_it_grows_and_is_purged(
    servers: ServerFactory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flavor: str
) -> None:
    """By its place in the store, and through the port by an account that may read nothing else."""
    source = servers.start("source") if flavor == "mariadb" else servers.start_mysql("source")
    create_account(source)
    execute(
        source,
        "CREATE DATABASE shop",
        "CREATE DATABASE crm",
        "CREATE TABLE crm.person (id INT PRIMARY KEY)",
        "CREATE USER lander@'%' IDENTIFIED BY 'a word'",
    )
    monkeypatch.setenv("MYSQL_PWD", "a word")
    lakes = tmp_path / "files", tmp_path / "port"
    with ServeProcess(tmp_path / "serve", source, extra=_SMALL_FILES) as serve:
        serve.execute("CREATE BINLOG 'orders' LOG(shop)", "CREATE BINLOG 'all'")
        serve.execute("GRANT READ ON BINLOG 'orders' TO lander@'%'")
        execute(source, "CREATE TABLE shop.orders (id INT PRIMARY KEY, note VARCHAR(900))")
        places = (
            f"{serve.data_dir}#orders",
            f"{flavor}://lander@{source.host}:{serve.port}",
        )

        def written(first: int) -> None:
            execute(
                source,
                *(
                    f"INSERT INTO shop.orders VALUES ({first + n}, REPEAT('x', 800))"
                    for n in range(9)
                ),
                f"INSERT INTO crm.person VALUES ({first})",
                f"DELETE FROM shop.orders WHERE id = {first + 4}",
            )
            serve.wait_until_complete("orders")

        def check() -> None:
            rows = execute(source, "SELECT * FROM shop.orders")
            for place, lake in zip(places, lakes, strict=True):
                report = land(place, str(lake))
                assert set(report.tables) == {"shop.orders"}
                assert sum(current_rows(lake / "current/shop/orders").values()) == len(rows)
                assert set(current_rows(lake / "current/shop/orders")) == set(rows)

        def purge() -> None:
            last = serve.execute("SHOW BINARY LOGS FOR 'orders'")[-1][0]
            serve.execute(f"PURGE BINARY LOGS FOR 'orders' TO '{last}'")

        written(10)
        check()
        assert list(verify_lake(Lake(into=str(lakes[1]), sources=[places[0]]))) == []
        for place in places:
            assert sum(batch.num_rows for batch in binlane.scan(place, "shop.orders")) == 10
        purge()
        written(30)
        check()
        written(50)
        purge()
        for place, lake in zip(places, lakes, strict=True):
            with pytest.raises(BinlaneError, match="purged"):
                land(place, str(lake))
