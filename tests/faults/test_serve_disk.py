"""A real `serve` whose disk is full, breaks or becomes read-only, and goes on once it is mended."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from binlane.binlogs.store.verify import verify
from binlane.live.provision.private_server import SOURCE_OPTIONS, PrivateServer
from tests.live_oracle import differences
from tests.serve_process import ServeProcess, create_account, wait_until
from tests.servers import connect, execute

pytestmark = pytest.mark.system

HTTP = "[http]\nport = 0\n"
FILE_BYTES_MAX = 150_000


@pytest.fixture(scope="module")
def source(server_directory: Path) -> Iterator[PrivateServer]:
    with PrivateServer.start(server_directory, name="disk", options=SOURCE_OPTIONS) as server:
        create_account(server)
        execute(
            server,
            "CREATE DATABASE shop",
            "CREATE DATABASE crm",
            "CREATE TABLE shop.t (id INT AUTO_INCREMENT PRIMARY KEY, v LONGTEXT)",
            "CREATE TABLE crm.t (id INT AUTO_INCREMENT PRIMARY KEY, v LONGTEXT)",
        )
        yield server


def write(source: PrivateServer, table: str, *, kilobytes: int) -> None:
    with connect(source) as session, session.cursor() as cursor:
        for _ in range(kilobytes // 10):
            cursor.execute(f"INSERT INTO {table} (v) VALUES (REPEAT('x', 10240))")


def states(serve: ServeProcess) -> dict[str, str]:
    return {each["name"]: each["state"] for each in json.loads(serve.get("/api/binlogs")[1])}


def is_well(serve: ServeProcess) -> bool:
    return serve.get("/healthz") == (200, "ok\n")


def check(source: PrivateServer, serve: ServeProcess, out: Path) -> None:
    """See that all binlogs hold what they must, in the end."""
    wait_until(lambda: is_well(serve))
    for name in states(serve):
        serve.wait_until_complete(name)
    assert list(verify([serve.data_dir])) == []
    assert serve.stop() == 0
    assert differences(source, serve.data_dir, out) == []
    assert "Traceback" not in serve.log


def test_a_binlog_without_room_stops_and_the_others_go_on(
    source: PrivateServer, tmp_path: Path
) -> None:
    """Of room there is too little in one file: as much as the system lets a file have."""
    with ServeProcess(tmp_path / "serve", source, extra=HTTP) as serve:
        serve.execute("CREATE BINLOG 'busy' LOG(shop)", "CREATE BINLOG 'quiet' LOG(crm)")
        room = (FILE_BYTES_MAX, resource.RLIM_INFINITY)
        resource.prlimit(serve.process_id, resource.RLIMIT_FSIZE, room)
        write(source, "shop.t", kilobytes=2 * FILE_BYTES_MAX // 1000)
        wait_until(lambda: states(serve)["busy"] == "STOPPED")
        status, text = serve.get("/healthz")
        assert status == 503
        assert "binlog busy is stopped: no room" in text
        execute(source, "INSERT INTO crm.t (v) VALUES ('goes on')")
        serve.wait_until_complete("quiet")
        assert states(serve) == {"busy": "STOPPED", "quiet": "OPEN"}
        assert list(verify([serve.data_dir])) == []
        unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
        resource.prlimit(serve.process_id, resource.RLIMIT_FSIZE, unlimited)
        check(source, serve, tmp_path / "oracle")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Callable[[str], None]]:
    """A file system of its own at `tmp_path / "serve"`; gives what mounts it anew, with options."""
    if os.geteuid() != 0:
        pytest.skip("only root may mount a file system")
    path = tmp_path / "serve"
    path.mkdir()

    def mount(options: str) -> None:
        subprocess.run(["mount", "-o", options, "tmpfs", path], check=True, capture_output=True)

    try:
        subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=700k", "tmpfs", path],
            check=True,
            capture_output=True,
        )
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"no file system can be mounted here: {error}")
    with ExitStack() as stack:
        stack.callback(lambda: subprocess.run(["umount", "-l", path], check=True))
        yield mount


def test_a_full_disk_ends_nothing(
    source: PrivateServer, tmp_path: Path, small_disk: Callable[[str], None]
) -> None:
    """Nothing has room: no file, no catalog, no log."""
    with ServeProcess(tmp_path / "serve", source, extra=HTTP) as serve:
        serve.execute("CREATE BINLOG 'busy'", "CREATE BINLOG 'quiet' LOG(crm)")
        write(source, "shop.t", kilobytes=900)
        # It tries again and again, so that it is stopped now and then.
        wait_until(lambda: states(serve)["busy"] == "STOPPED" and serve.get("/healthz")[0] == 503)
        assert serve.is_running
        small_disk("remount,size=16m")
        check(source, serve, tmp_path / "oracle")


def test_serve_killed_on_a_full_disk_starts_again(
    source: PrivateServer, tmp_path: Path, small_disk: Callable[[str], None]
) -> None:
    with ServeProcess(tmp_path / "serve", source, extra=HTTP) as serve:
        serve.execute("CREATE BINLOG 'busy'")
        write(source, "shop.t", kilobytes=900)
        wait_until(lambda: states(serve)["busy"] == "STOPPED")
        serve.kill()
        small_disk("remount,size=16m")
        serve.start()
        check(source, serve, tmp_path / "oracle")


def test_a_directory_that_becomes_read_only(source: PrivateServer, tmp_path: Path) -> None:
    """No new file can begin there: the others go on, and it does once it is mended."""
    small = HTTP + "[binlog]\nmax_binlog_size = 65536\n"
    with ServeProcess(tmp_path / "serve", source, extra=small) as serve:
        serve.execute("CREATE BINLOG 'busy' LOG(shop)", "CREATE BINLOG 'quiet' LOG(crm)")
        directory = serve.data_dir / "binlogs" / "busy"
        with ExitStack() as stack:
            stack.callback(_forbid_files(directory))
            write(source, "shop.t", kilobytes=200)
            wait_until(lambda: states(serve)["busy"] == "STOPPED")
            assert "binlog busy is stopped" in serve.get("/healthz")[1]
            execute(source, "INSERT INTO crm.t (v) VALUES ('goes on')")
            serve.wait_until_complete("quiet")
        check(source, serve, tmp_path / "oracle")


def _forbid_files(directory: Path) -> Callable[[], None]:
    """Let no file be made in a directory, not by root either; gives what allows it again."""
    if os.geteuid() != 0:
        directory.chmod(0o500)
        return lambda: directory.chmod(0o750)
    chattr = shutil.which("chattr", path=f"{os.environ['PATH']}:/usr/bin:/sbin")
    if chattr is None:
        pytest.skip("root is stopped by chattr only, which is not here")
    if subprocess.run([chattr, "+i", directory], check=False, capture_output=True).returncode:
        pytest.skip("this file system has no immutable directories")

    def allow() -> None:
        subprocess.run([chattr, "-i", directory], check=True)

    return allow
