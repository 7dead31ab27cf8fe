"""The processes of the demo: two private servers and `binlane serve` between them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import pymysql

from binlane.client.settings import ServerUrl
from binlane.errors import BinlaneError, PeerError
from binlane.live.provision.demo.dialect import DemoServers
from binlane.live.provision.private_server import PrivateServer
from binlane.live.provision.setup import NewAccount, set_up

BEGIN: Final = "begin\n"
# A JVM that ends soon: the best code takes longer to compile than it saves, here most of the time.
_QUICK: Final = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


@dataclass(frozen=True, slots=True)
class Landed:
    """The result of reading and landing a binlog.

    Attributes:
        counted: Changes of each table, as the data source `binlog` gives them.
        rows: The number of row images that were landed.
        seconds: The time that landing took, in seconds.
        last_gtid: The GTID up to which the log was landed.
    """

    counted: dict[str, int]
    rows: int
    seconds: float
    last_gtid: str


def main() -> int:
    """Start Spark, wait for `begin` at standard input, read the binlog, land it, tell the result.

    Its arguments are the binlog, the target, and the file for what was `Landed`, as JSON.
    """
    source, target, result = sys.argv[1:]
    try:
        landed = _land(source, target)
    except BinlaneError as error:
        sys.stderr.write(f"{error}\nhint: {error.hint}\n")
        return 1
    if landed is not None:
        Path(result).write_text(json.dumps(asdict(landed)), encoding="utf-8")
    return 0


def _land(source: str, target: str) -> Landed | None:
    """None if the demo ended before it came to this."""
    from binlane.tables.landing.landing import land  # noqa: PLC0415  # the demo needs BEGIN alone
    from binlane.tables.spark.spark_engine import SparkEngine  # noqa: PLC0415  # as above
    from binlane.tables.spark.spark_session import build_session  # noqa: PLC0415  # as above

    spark = build_session(master="local[2]", settings=_QUICK)
    try:
        if sys.stdin.readline() != BEGIN:
            return None
        changes = spark.read.format("binlog").option("path", source).load()
        counted = {
            f"{row['_database']}.{row['_table']}": row["count"]
            for row in changes.groupBy("_database", "_table").count().collect()
            if row["_table"] is not None
        }
        report = land(source, target, engine=SparkEngine(spark))
    finally:
        spark.stop()
    return Landed(counted, report.rows, report.seconds, str(report.last_gtid))


if __name__ == "__main__":
    sys.exit(main())


ADMIN, ADMIN_PASSWORD = "binlane", "demo-binlane"  # an account of a private server
REPLICA, REPLICA_PASSWORD = "replica", "demo-replica"  # as above
CHARACTER_SET: Final = "CHARACTER SET utf8mb4"
_READY_TIMEOUT_S: Final = 30.0
_STOP_TIMEOUT_S: Final = 15.0


class DemoStage:
    """Everything that runs during a demo.

    Attributes:
        directory: Holds the data and logs of all processes.
        dialect: The programs and options of the servers.
        source: The server whose log is captured.
        replica: The server that reads the binlog `orders`.
        port: The port where `binlane serve` listens.
    """

    def __init__(self, directory: Path, dialect: DemoServers) -> None:
        self.directory = directory
        self.dialect = dialect
        self.source = PrivateServer.start(
            directory, name="source", options=dialect.source_options, program=dialect.program
        )
        self.replica: PrivateServer | None = None
        self.port = 0
        self._serve: subprocess.Popen[bytes] | None = None
        self._spark: subprocess.Popen[str] | None = None

    @property
    def data_dir(self) -> Path:
        """The store of `binlane serve`."""
        return self.directory / "data"

    @property
    def serve_log(self) -> Path:
        """The file with the output of `binlane serve`."""
        return self.directory / "serve.log"

    @property
    def lake(self) -> Path:
        """The directory where Spark lands a binlog."""
        return self.directory / "lake"

    @property
    def serve_pid(self) -> int:
        """Process id of `binlane serve`."""
        assert self._serve is not None, "binlane serve has been started"
        return self._serve.pid

    def create_accounts(self, databases: Sequence[str]) -> None:
        """Databases and accounts on the source, and what `binlane setup` makes there.

        Raises:
            PeerError: If something that a source needs lacks all the same.
        """
        with closing(self.connect_source()) as connection, connection.cursor() as cursor:
            for statement in (
                *(f"CREATE DATABASE {name} {CHARACTER_SET}" for name in databases),
                *self.dialect.accounts(
                    admin=ADMIN,
                    admin_password=ADMIN_PASSWORD,
                    user=REPLICA,
                    password=REPLICA_PASSWORD,
                ),
            ):
                cursor.execute(statement)
        said: list[str] = []
        account = NewAccount(ADMIN, "%", ADMIN_PASSWORD)
        url = ServerUrl.parse(self.source.url)
        if set_up(url, "", said.append, is_check=False, new=account).lacking:
            raise PeerError(
                "the source is not prepared",
                peer=self.source.url,
                phase="setup",
                hint="\n".join(said),
            )

    def start_serve(self) -> None:
        """Start `binlane serve` as a process of its own and wait until it takes logins.

        Raises:
            PeerError: If it ends or does not get ready.
        """
        password = self.directory / "secret"
        password.write_text(ADMIN_PASSWORD, encoding="utf-8")
        password.chmod(0o600)
        config = self.directory / "binlane.toml"
        ready = self.directory / "serve.port"
        config.write_text(
            f'data_dir = "{self.data_dir}"\n'
            "[source]\n"
            f'url = "{self.source.url.replace("root", ADMIN)}"\n'
            'password_file = "secret"\n'
            "[listen]\nport = 0\n"
            '[binlog]\nmax_binlog_size = "256K"\n',
            encoding="utf-8",
        )
        with self.serve_log.open("ab") as log:
            self._serve = subprocess.Popen(  # noqa: S603  # our own program
                [
                    *(sys.executable, "-m", "binlane", "serve"),
                    *("--config", str(config), "--port-file", str(ready)),
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
                start_new_session=True,
            )
        self.wait_for("binlane serve to listen", ready.exists, timeout_s=_READY_TIMEOUT_S)
        self.port = int(ready.read_text(encoding="utf-8"))

    def start_replica(self) -> PrivateServer:
        """Start the server that will be the replica."""
        self.replica = PrivateServer.start(
            self.directory,
            name="replica",
            options=self.dialect.replica_options,
            program=self.dialect.program,
        )
        return self.replica

    def start_spark(self, binlog: str) -> None:
        """Start Spark, which needs a while, to land a binlog when it is told to.

        Raises:
            ModuleNotFoundError: If there is no PySpark.
        """
        if find_spec("pyspark") is None:
            raise ModuleNotFoundError("No module named 'pyspark'", name="pyspark")
        with self._spark_log.open("ab") as log:
            self._spark = subprocess.Popen(  # noqa: S603  # our own program
                [
                    *(sys.executable, "-m", "binlane.live.provision.demo.stage"),
                    *(f"{self.data_dir}#{binlog}", str(self.lake), str(self._landed)),
                ],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                text=True,
                start_new_session=True,
            )

    def land(self) -> Landed:
        """Let Spark land the binlog as it stands.

        Raises:
            PeerError: If it does not.
        """
        assert self._spark is not None, "Spark has been started"
        try:
            self._spark.communicate(BEGIN)
        except BrokenPipeError:  # it has ended, and its status tells
            self._spark.wait()
        if self._spark.returncode:
            raise PeerError(
                f"Spark ended with status {self._spark.returncode}",
                peer="Spark",
                phase="landing",
                hint=f"its log is {self._spark_log} and ends:\n{tail(self._spark_log)}",
            )
        return Landed(**json.loads(self._landed.read_text(encoding="utf-8")))

    @property
    def _spark_log(self) -> Path:
        return self.directory / "spark.log"

    @property
    def _landed(self) -> Path:
        return self.directory / "landed.json"

    def connect_source(self) -> pymysql.Connection[Any]:
        """A session on the source as root."""
        return _connect(self.source.port, "root", "")

    def connect_replica(self) -> pymysql.Connection[Any]:
        """A session on the replica as root."""
        assert self.replica is not None, "the replica has been started"
        return _connect(self.replica.port, "root", "")

    def connect_binlane(self) -> pymysql.Connection[Any]:
        """A session of an ordinary MySQL client on binlane's port."""
        return _connect(self.port, ADMIN, ADMIN_PASSWORD)

    def connect_writer(self) -> pymysql.Connection[Any]:
        """A session on binlane's port that may change everything."""
        return _connect(self.port, "root", "")

    def wait_for(self, what: str, is_so: Callable[[], bool], *, timeout_s: float) -> float:
        """Wait until something is so.

        Returns:
            Seconds waited.

        Raises:
            PeerError: If it is not in time, or `binlane serve` has ended.
        """
        begin = time.monotonic()
        while not is_so():
            if self._serve is not None and self._serve.poll() is not None:
                raise PeerError(
                    f"binlane serve ended with status {self._serve.returncode}",
                    peer="binlane serve",
                    phase=what,
                    hint=f"its log is {self.serve_log} and ends:\n{tail(self.serve_log)}",
                )
            if time.monotonic() - begin > timeout_s:
                raise PeerError(
                    f"waited {timeout_s:.0f} s for {what}",
                    peer="demo",
                    phase=what,
                    hint=f"the logs are in {self.directory}; serve.log ends:\n{tail(self.serve_log)}",
                )
            time.sleep(0.05)
        return time.monotonic() - begin

    def close(self) -> None:
        """End everything; nobody needs the servers' data any more."""
        if self._spark is not None and self._spark.poll() is None:
            self._spark.kill()  # its JVM ends with it
            self._spark.wait()
        if self.replica is not None:
            self.replica.kill()
        if self._serve is not None and self._serve.poll() is None:
            self._serve.terminate()
            try:
                self._serve.wait(_STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                self._serve.kill()
                self._serve.wait()
        self.source.kill()


def tail(path: Path, lines: int = 8) -> str:
    """The last lines of a log."""
    if not path.exists():
        return "(it does not exist)"
    return "\n".join(path.read_text("utf-8", "replace").splitlines()[-lines:])


def _connect(port: int, user: str, password: str) -> pymysql.Connection[Any]:
    return pymysql.connect(
        host="127.0.0.1",
        port=port,
        user=user,
        password=password,
        charset="utf8mb4",
        autocommit=False,
    )
