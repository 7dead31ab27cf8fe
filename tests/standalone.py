"""A Spark cluster in tests: a standalone master and workers, as processes of their own.

Their Python is a bare one: it has what binlane needs on workers, and nothing of this repository,
neither installed nor by a path or variable that they inherit.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import time
import urllib.request
import venv
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pyspark

from binlane.tables.spark.spark_session import find_java_home
from tests.quick_jvm import QUICK_JVM

WORKER_PACKAGES = ("isal", "numpy", "numpy.libs", "pyarrow", "pyarrow.libs", "zstandard")
"""What workers need; `docs/how-to/cluster.md` says the same."""

_HOST = "127.0.0.1"
_START_S = 90.0
_REGISTERED = re.compile(r'"aliveworkers"\s*:\s*(\d+)')


@dataclass(slots=True)
class Cluster:
    """A running cluster.

    Attributes:
        url: For `--master`.
        python: The workers' Python.
        directory: Holds what they write: `worker-N/app-…/N/`.
        processes: The master, then the workers.
    """

    url: str
    python: Path
    directory: Path
    processes: list[subprocess.Popen[bytes]]

    @property
    def settings(self) -> dict[str, str]:
        """What a session needs to be told."""
        return {
            "spark.pyspark.python": str(self.python),
            "spark.driver.host": _HOST,
            "spark.driver.bindAddress": _HOST,
            "spark.executor.memory": "512m",
            "spark.executor.cores": "1",
            "spark.executor.extraJavaOptions": QUICK_JVM,
            # Idle, the default is to wait a second for a task near its data.
            "spark.locality.wait": "0",
        }

    def executors(self) -> list[int]:
        """Process ids of the executors' JVMs that run now."""
        workers = {process.pid for process in self.processes[1:]}
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and (facts := _facts(entry)) is not None:
                parent, command = facts
                if parent in workers and b"CoarseGrainedExecutorBackend" in command:
                    found.append(int(entry.name))
        return found

    def logs(self) -> str:
        """What executors said, for a message."""
        return "\n".join(
            f"{path}:\n{path.read_text(errors='replace')[-1000:]}"
            for path in sorted(self.directory.glob("worker-*/*/*/stderr"))
        )


@contextmanager
def cluster(directory: Path, *, workers: int = 2) -> Iterator[Cluster]:
    """Start a master and workers with a core each; end them with all that they started."""
    python = bare_python(directory / "python")
    port, web_port = _free_port(), _free_port()
    url = f"spark://{_HOST}:{port}"
    processes = [
        _start(
            directory / "master.log",
            "master.Master",
            *("--host", _HOST, "--port", str(port), "--webui-port", str(web_port)),
        )
    ]
    try:
        for number in range(workers):
            home = directory / f"worker-{number}"
            processes.append(
                _start(
                    directory / f"worker-{number}.log",
                    "worker.Worker",
                    *("--host", _HOST, "-c", "1", "-m", "512m", "-d", str(home)),
                    *("--webui-port", str(_free_port()), url),
                )
            )
        _await(web_port, workers, processes, directory)
        yield Cluster(url, python, directory, processes)
    finally:
        for process in reversed(processes):
            # A group each, so that executors and their Pythons end too.
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def bare_python(directory: Path, packages: Sequence[str] = WORKER_PACKAGES) -> Path:
    """A Python of this version that has these packages of this one's and no others."""
    venv.create(directory, symlinks=True, with_pip=False)
    (site,) = directory.glob("lib/python*/site-packages")
    spec = find_spec("pyarrow")
    assert spec is not None
    assert spec.origin is not None
    here = Path(spec.origin).parents[1]
    for name in packages:
        if (here / name).exists():
            (site / name).symlink_to(here / name)
    return directory / "bin" / "python"


def _start(log: Path, role: str, *arguments: str) -> subprocess.Popen[bytes]:
    home = Path(pyspark.__file__).parent
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(log.parent),
        "JAVA_HOME": str(find_java_home()),
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": _HOST,
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": QUICK_JVM,
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    command = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{role}", *arguments]
    with log.open("wb") as output:
        return subprocess.Popen(
            command,
            env=environment,
            cwd=log.parent,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def _await(
    web_port: int, workers: int, processes: list[subprocess.Popen[bytes]], directory: Path
) -> None:
    deadline = time.monotonic() + _START_S
    while time.monotonic() < deadline:
        if any(process.poll() is not None for process in processes):
            break
        try:
            with urllib.request.urlopen(f"http://{_HOST}:{web_port}/json/", timeout=5) as answer:
                match = _REGISTERED.search(answer.read().decode())
        except OSError:
            match = None
        if match and int(match[1]) == workers:
            return
        time.sleep(0.2)
    said = "\n".join(path.read_text(errors="replace") for path in directory.glob("*.log"))
    raise AssertionError(f"the cluster did not start:\n{said[-5000:]}")


def _facts(entry: Path) -> tuple[int, bytes] | None:
    """Parent and command line of a process, None if it has ended."""
    try:
        status = (entry / "stat").read_text()
        return int(status.rpartition(")")[2].split()[1]), (entry / "cmdline").read_bytes()
    except OSError:
        return None


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((_HOST, 0))
        port: int = probe.getsockname()[1]
        return port
