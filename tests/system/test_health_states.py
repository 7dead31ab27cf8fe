"""/healthz in each state of docs/reference/http.md, at every moment of a retry, on real servers."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

import pytest

from binlane.live.provision.private_server import SOURCE_OPTIONS, PrivateServer
from tests.serve_process import ServeProcess, create_account, wait_until, worker_processes
from tests.servers import ServerFactory, execute, purge_before

HTTP = "[http]\nport = 0\n"
FAST = "heartbeat_period_s = 0.2\ntimeout_s = 1\n"
OK = (200, "ok\n")
_LOOKS = 40
"""So many answers in a row are some seconds, in which a refused source is tried several times."""


class Watch:
    """All answers of /healthz from its beginning on, one after the other."""

    def __init__(self, serve: ServeProcess) -> None:
        self.answers: list[tuple[int, str]] = []
        self._serve = serve
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        while not self._is_over.wait(0.01):
            self.answers.append(self._serve.get("/healthz"))

    def wait_for_more(self, count: int = _LOOKS) -> None:
        before = len(self.answers)
        wait_until(lambda: len(self.answers) >= before + count)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    @property
    def told(self) -> set[str]:
        """What was wrong, in all that was answered."""
        return {text for status, text in self.answers if status == 503}

    def behind_the_first_failure(self) -> list[int]:
        """The statuses from the first that is not 200 on."""
        statuses = [status for status, _ in self.answers]
        return statuses[statuses.index(503) :] if 503 in statuses else []


@contextmanager
def serving(
    source: PrivateServer, directory: Path, *, extra: str = HTTP, capture: str = FAST
) -> Iterator[ServeProcess]:
    create_account(source)
    with ServeProcess(directory / "serve", source, extra=extra, capture=capture) as serve:
        wait_until(lambda: "(HTTP)" in serve.log)
        yield serve


def start(servers: ServerFactory, flavor: str, *options: str) -> PrivateServer:
    if flavor == "mysql":
        return servers.start_mysql("source", *options)
    return servers.start("source", (*SOURCE_OPTIONS, *options))


FLAVORS = pytest.mark.parametrize("flavor", ["mariadb", "mysql"])


@FLAVORS
def test_a_source_that_leaves_databases_out_of_its_log(
    servers: ServerFactory, tmp_path: Path, flavor: str
) -> None:
    options = ("--binlog-do-db=shop", "--binlog-do-db=crm")
    with serving(start(servers, flavor, *options), tmp_path) as serve:
        told = "the source runs with --binlog-do-db=shop --binlog-do-db=crm: what it leaves out"
        with Watch(serve) as watch:
            wait_until(lambda: told in serve.get("/healthz")[1])
            watch.wait_for_more()
        assert {status for status, _ in watch.answers} == {503}
        page = serve.get("/")[1]
        assert told in page
        assert "All is well" not in page
        assert "binlane_source_gaps 1" in serve.get("/metrics")[1]
        assert serve.log.count(told) == 1


VARIABLES = {
    "mariadb": {"binlog_format": ("MIXED", "ROW"), "binlog_row_image": ("MINIMAL", "FULL")},
    "mysql": {"gtid_mode": ("ON_PERMISSIVE", "ON"), "binlog_row_image": ("NOBLOB", "FULL")},
}


@pytest.mark.parametrize("flavor", ["mariadb", pytest.param("mysql", marks=pytest.mark.slow)])
def test_variables_of_the_source_that_change_while_its_log_comes(
    servers: ServerFactory, tmp_path: Path, flavor: str
) -> None:
    source, changed = start(servers, flavor), VARIABLES[flavor]
    with serving(source, tmp_path) as serve:
        wait_until(lambda: serve.get("/healthz") == OK)
        execute(source, *(f"SET GLOBAL {name} = '{bad}'" for name, (bad, _) in changed.items()))
        wait_until(lambda: serve.get("/healthz")[1].count("\n") == len(changed))
        text = serve.get("/healthz")[1]
        for name, (bad, _) in changed.items():
            assert f"the source has {name} = {bad}" in text
            assert f"the source has {name} = {bad}" in serve.log
        execute(source, *(f"SET GLOBAL {name} = '{good}'" for name, (_, good) in changed.items()))
        wait_until(lambda: serve.get("/healthz") == OK)
        assert serve.log.count(": resolved: ") == len(changed)


def test_a_source_that_does_not_log_what_it_replicates(
    servers: ServerFactory, tmp_path: Path
) -> None:
    source = servers.start("source", (*SOURCE_OPTIONS, "--log-slave-updates=OFF"))
    with serving(source, tmp_path) as serve:
        wait_until(lambda: serve.get("/healthz") == OK)
        execute(source, "SET GLOBAL gtid_slave_pos = CONCAT(@@gtid_binlog_pos, ',7-9-1')")
        wait_until(lambda: "log_slave_updates = OFF" in serve.get("/healthz")[1])
        assert serve.get("/healthz")[0] == 503


@pytest.mark.parametrize("is_away", [False, True])
def test_transactions_without_a_gtid_are_not_missed_in_silence(
    servers: ServerFactory, tmp_path: Path, *, is_away: bool
) -> None:
    source = servers.start_mysql("source")
    execute(source, "CREATE DATABASE shop", "CREATE TABLE shop.t (id INT PRIMARY KEY)")
    with serving(source, tmp_path) as serve:
        serve.execute("CREATE BINLOG 'b'")
        execute(source, "INSERT INTO shop.t VALUES (1)")
        serve.wait_until_complete("b")
        wait_until(lambda: serve.get("/healthz") == OK)
        if is_away:
            time.sleep(1.5)  # where it is in the source's log is saved each second
            assert serve.stop() == 0
        execute(
            source,
            "SET GLOBAL gtid_mode = ON_PERMISSIVE",
            "SET GLOBAL gtid_mode = OFF_PERMISSIVE",
            "INSERT INTO shop.t VALUES (2)",
        )
        if not is_away:
            wait_until(lambda: "gtid_mode = OFF_PERMISSIVE" in serve.get("/healthz")[1])
        execute(
            source,
            "SET GLOBAL gtid_mode = ON_PERMISSIVE",
            "SET GLOBAL gtid_mode = ON",
            "INSERT INTO shop.t VALUES (3)",
        )
        if is_away:
            serve.start()
        with Watch(serve) as watch:
            wait_until(lambda: "transactions without a GTID" in serve.get("/healthz")[1])
            watch.wait_for_more()
        # The row is in no binlog, and that is told for as long as it is so.
        assert {status for status, _ in watch.answers} == {503}, watch.told
        assert serve.stop() == 0
        serve.start()
        wait_until(lambda: "transactions without a GTID" in serve.get("/healthz")[1])
        done = serve.execute("SHOW BINLOGS")[0][3]
        serve.execute(f"START BINLOG 'b' FROM '{done}'")
        serve.wait_until_complete("b")
        wait_until(lambda: serve.get("/healthz")[1].startswith("binlog b: replicas stop at an"))
        ((*_, reason, _),) = serve.execute("SHOW BINLOG INCIDENTS")
        assert "no transactions that had no GTID" in reason
        assert len(serve.gtids("b")) == 2
        serve.execute("ACKNOWLEDGE BINLOG INCIDENTS FOR 'b'")
        assert serve.get("/healthz") == OK


@FLAVORS
def test_a_source_that_purged_what_is_needed_is_never_well(
    servers: ServerFactory, tmp_path: Path, flavor: str
) -> None:
    source = start(servers, flavor)
    with serving(source, tmp_path) as serve:
        serve.execute("CREATE BINLOG 'b'")
        wait_until(lambda: serve.get("/healthz") == OK)
        assert serve.stop() == 0
        execute(source, "CREATE DATABASE gone", "FLUSH BINARY LOGS", "CREATE DATABASE there")
        last = str(execute(source, "SHOW BINARY LOGS")[-1][0])

        def is_purged() -> bool:
            # A dump that has just ended may still keep its file.
            purge_before(source, last)
            return str(execute(source, "SHOW BINARY LOGS")[0][0]) == last

        wait_until(is_purged)
        serve.start()
        with Watch(serve) as watch:
            wait_until(lambda: serve.log.count("main feed: ") >= 2)
            watch.wait_for_more(100)
        assert {status for status, _ in watch.answers} == {503}, watch.told
        what = "gtid_executed" if flavor == "mysql" else "gtid_binlog_pos"
        done = execute(source, f"SELECT @@{what}")[0][0]
        serve.execute(f"START BINLOG 'b' FROM '{done}'")
        told = "binlog b: replicas stop at an INCIDENT"
        wait_until(lambda: serve.get("/healthz")[1].startswith(told))
        serve.execute("ACKNOWLEDGE BINLOG INCIDENTS FOR 'b'")
        assert serve.get("/healthz") == OK


def test_a_source_that_is_gone_and_comes_back(servers: ServerFactory, tmp_path: Path) -> None:
    source = servers.start("source")
    with serving(source, tmp_path) as serve:
        serve.execute("CREATE BINLOG 'b'")
        wait_until(lambda: serve.get("/healthz") == OK)
        with Watch(serve) as watch:
            source.kill()
            watch.wait_for_more()
        assert set(watch.behind_the_first_failure()) == {503}
        assert all(text.startswith("not connected to the source") for text in watch.told)
        again = servers.start("again", port=source.port)
        create_account(again)
        # Another server: its log is not the one that was taken.
        wait_until(lambda: "not connected to the source" in serve.get("/healthz")[1])
        with Watch(serve) as watch:
            watch.wait_for_more()
        assert {status for status, _ in watch.answers} == {503}


def test_a_worker_that_is_started_again(servers: ServerFactory, tmp_path: Path) -> None:
    extra = f"[gateway]\nworkers = 2\n{HTTP}"
    with serving(servers.start("source"), tmp_path, extra=extra) as serve:
        wait_until(lambda: serve.get("/healthz") == OK)
        with Watch(serve) as watch:
            os.kill(worker_processes(serve)[0], signal.SIGKILL)
            wait_until(lambda: any("worker 0" in text for text in watch.told))
            wait_until(lambda: serve.get("/healthz") == OK)
        assert watch.told == {"worker 0 of the MySQL port is being started\n"}


def test_starting_and_stopping(servers: ServerFactory, tmp_path: Path) -> None:
    source = servers.start("source")
    os.kill(source.process_id, signal.SIGSTOP)
    try:
        with ServeProcess(tmp_path / "serve", source, extra=HTTP, capture=FAST) as serve:
            wait_until(lambda: "(HTTP)" in serve.log)
            with Watch(serve) as watch:
                watch.wait_for_more()
            assert {status for status, _ in watch.answers} == {503}
            assert any("connecting" in text for text in watch.told)
            os.kill(source.process_id, signal.SIGCONT)
            create_account(source)
            wait_until(lambda: serve.get("/healthz") == OK)
            os.kill(serve.process_id, signal.SIGTERM)
            while serve.is_running:
                try:
                    assert serve.get("/healthz") == OK
                except OSError:
                    break  # nobody answers while it ends
                time.sleep(0.01)
            assert serve.wait() == 0
    finally:
        os.kill(source.process_id, signal.SIGCONT)
