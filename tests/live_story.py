"""A source under load, `serve` beside it, replicas behind it, and what goes wrong with any of them.

At the end everything that was committed must be in every binlog whose scope it is in, once and in
order: told by the source's own log (`live_oracle`), by `verify`, and by the tables of the replicas.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import pymysql

from binlane.binlogs.store.verify import verify
from binlane.live.provision.private_server import PrivateServer
from tests.live_load import SECRET, Load
from tests.live_oracle import differences
from tests.replay import checksums
from tests.serve_process import ADMIN, PASSWORD, ServeProcess, create_account
from tests.servers import ServerFactory, connect, execute

BINLOGS: Final[Mapping[str, str]] = {
    "all": "",
    "shop": "LOG(shop)",
    "tables": "LOG(shop.w0, shop.common)",
    "rest": "IGNORE(crm)",
    "moving": "LOG(crm)",
}
"""Their clauses. `shop` and `all` have replicas; renames cross the edge of `tables`."""

_SCOPES: Final = (
    "IGNORE ALL, ADD LOG(shop)",
    "IGNORE ALL, ADD LOG(crm)",
    "LOG ALL",
    "LOG ALL, ADD IGNORE(crm)",
    "IGNORE ALL, ADD LOG(shop.w1, crm.person)",
    "IGNORE ALL",
)
_SMALL_FILES: Final = "[binlog]\nmax_binlog_size = 262144\n"
_LIFE_S: Final = 3.0
_END_TIMEOUT_S: Final = 240.0


class Story:
    """The servers and processes of one run.

    Attributes:
        source: The source.
        serve: The process that is tried.
        counts: What was done to whom.
    """

    def __init__(
        self,
        servers: ServerFactory,
        directory: Path,
        *,
        writers: int,
        seed: int,
        pause_s: float,
        is_mysql: bool = False,
    ) -> None:
        """Start the servers; `with` starts all else.

        Args:
            servers: Starts them.
            directory: For `serve` and for what the oracle makes.
            writers: Sessions that write.
            seed: Of what is done by lot, but for when it strikes.
            pause_s: As `Load` has it.
            is_mysql: The source is a MySQL; then there are no replicas.
        """
        self.counts: Counter[str] = Counter()
        self.source = servers.start_mysql("source") if is_mysql else servers.start("source")
        self._directory = directory
        self._chance = random.Random(seed)
        self._has_ended = threading.Event()
        self._failures: list[BaseException] = []
        create_account(self.source)
        execute(self.source, "CREATE DATABASE shop", "CREATE DATABASE crm")
        self.serve = ServeProcess(directory / "serve", self.source, extra=_SMALL_FILES)
        self.replicas = {
            name: servers.start(name, (f"--server-id={server_id}", "--slave-net-timeout=10"))
            for server_id, name in enumerate(() if is_mysql else ("all", "shop"), start=30)
        }
        self.load = Load(self.source, writers=writers, seed=seed, pause_s=pause_s)
        self._defining = threading.Thread(target=self._until_the_end, args=(self._define,))

    def __enter__(self) -> Self:
        self.serve.start()
        try:
            self.serve.execute(*(f"CREATE BINLOG '{n}' {scope}" for n, scope in BINLOGS.items()))
            for name, replica in self.replicas.items():
                _follow(replica, self.serve, name)
            self.load.prepare()
        except BaseException:
            self.serve.kill()
            raise
        self.load.__enter__()
        self._defining.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.load.__exit__(kind, error, traceback)
        self._has_ended.set()
        self._defining.join()
        if error is not None:
            self.serve.__exit__(kind, error, traceback)
        elif self._failures:
            self.serve.kill()
            raise self._failures[0]

    def pause(self, longest_s: float) -> None:
        """Wait for a while, by lot."""
        time.sleep(self._chance.uniform(0, longest_s))

    def live(self, longest_s: float) -> None:
        """Let `serve` live until it has changed a definition, and then for a while, by lot."""
        before = self.counts["definitions"]
        deadline_s = time.monotonic() + _LIFE_S
        while self.counts["definitions"] == before and time.monotonic() < deadline_s:
            time.sleep(0.02)
        self.pause(longest_s)

    def kill_serve(self, *, longest_start_s: float = 0.8) -> int:
        """SIGKILL; a new process lives for a moment or until it is ready. Gives the kills."""
        kills = 1
        self.serve.kill()
        while self._chance.random() < 0.4:
            self.serve.spawn()
            self.pause(longest_start_s)
            self.serve.kill()
            kills += 1
        self.serve.start()
        self.counts["kills of serve"] += kills
        return kills

    def end_serve(self) -> None:
        """SIGTERM, and again."""
        assert self.serve.stop() == 0, self.serve.log[-4000:]
        self.serve.start()
        self.counts["ends of serve"] += 1

    def restart_source(self) -> None:
        """Let the source end and come again."""
        self.source.restart()
        self.counts["restarts of the source"] += 1

    def kill_source(self) -> None:
        """SIGKILL for the source."""
        self.source.kill()
        self.pause(1)
        self.source.restart()
        self.counts["kills of the source"] += 1

    def check(self) -> None:
        """See that nothing was lost, doubled or damaged; behind the `with` block.

        Raises:
            AssertionError: If anything was.
        """
        with self.serve:
            self._check()

    def _check(self) -> None:
        names = {str(row[0]) for row in self.serve.execute("SHOW BINLOGS")}
        assert names >= set(BINLOGS)
        for name in names:
            self.serve.wait_until_complete(name, timeout_s=_END_TIMEOUT_S)
        assert [str(fault) for fault in verify([self.serve.data_dir])] == []
        for name, replica in self.replicas.items():
            self._check_replica(name, replica)
        assert self.serve.stop() == 0, self.serve.log[-4000:]
        oracle = self._directory / "oracle"
        assert differences(self.source, self.serve.data_dir, oracle) == []
        for name in ("shop", "rest"):
            assert SECRET.encode() not in self.serve.binlog_bytes(name)
        assert "Traceback" not in self.serve.log

    def _check_replica(self, name: str, replica: PrivateServer) -> None:
        log = self.serve.binlog_bytes("all")
        last = self.serve.gtids(name)[-1]
        deadline_s = time.monotonic() + _END_TIMEOUT_S
        while execute(replica, "SELECT @@gtid_slave_pos")[0][0] != last:
            self._finish_unlogged(replica, log)
            assert time.monotonic() < deadline_s, slave_status(replica)
            time.sleep(0.1)
        sums = checksums(self.source)
        if name == "shop":
            sums = {table: each for table, each in sums.items() if table.startswith("`shop`")}
        assert checksums(replica) == sums, name

    def _finish_unlogged(self, replica: PrivateServer, log: bytes) -> None:
        """Finish on a replica what the source finished without a word in its log.

        MariaDB does that to XA transactions that it was killed with: after its recovery an
        XA COMMIT is executed, and not logged, so that its own replicas wait for ever, too.
        """
        for row in execute(replica, "XA RECOVER"):
            xid = str(row[3])
            verb = self.load.finished.get(xid)
            words = (f"XA {word} X'{xid.encode().hex()}'" for word in ("COMMIT", "ROLLBACK"))
            if verb is not None and not any(word.encode() in log for word in words):
                execute(replica, f"XA {verb} '{xid}'")
                self.counts["XA that the source did not log"] += 1

    def _until_the_end(self, work: Callable[[], None]) -> None:
        try:
            while not self._has_ended.wait(0.05):
                with suppress(pymysql.MySQLError, OSError):
                    work()
        except BaseException as error:
            self._failures.append(error)
            raise

    def _define(self) -> None:
        """Change definitions at any time; whether a statement came through is told by the store."""
        with self.serve.connect() as session, session.cursor() as cursor:
            while not self._has_ended.is_set():
                kind = random.random()
                if kind < 0.5:
                    cursor.execute(f"ALTER BINLOG 'moving' {random.choice(_SCOPES)}")
                elif kind < 0.7:
                    cursor.execute("CREATE BINLOG IF NOT EXISTS 'brief' LOG(shop)")
                elif kind < 0.8:
                    cursor.execute("DROP BINLOG IF EXISTS 'brief'")
                else:
                    name = random.choice(list(BINLOGS))
                    cursor.execute(f"FLUSH BINARY LOGS '{name}'")
                self.counts["definitions"] += 1
                self._has_ended.wait(random.uniform(0, 0.3))


def _follow(replica: PrivateServer, serve: ServeProcess, name: str) -> None:
    """Let a replica follow a binlog from its beginning."""
    execute(
        replica,
        "CREATE DATABASE shop",
        "CREATE DATABASE crm",
        f"CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={serve.port}, "
        f"MASTER_USER='{ADMIN}', MASTER_PASSWORD='{PASSWORD}', MASTER_LOG_FILE='{name}.000001', "
        "MASTER_LOG_POS=4, MASTER_CONNECT_RETRY=1",
        "START SLAVE",
    )


def slave_status(replica: PrivateServer) -> dict[str, object]:
    """SHOW SLAVE STATUS, by column."""
    with connect(replica) as session, session.cursor(pymysql.cursors.DictCursor) as cursor:
        cursor.execute("SHOW SLAVE STATUS")
        return dict(cursor.fetchone() or {})
