"""Fresh logs of real servers with random options: text and exit status are the official tool's."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import pytest

from binlane.cli import main
from tests.differential.logging.servers import LoggingServer, mariadb, mysql
from tests.differential.printing.logs import make_log
from tests.differential.printing.options import Facts, draw, essence, is_compared
from tests.servers import of_mysql

_SEEDS = range(4)
_COMMANDS = 40
_LEAST_EQUAL = 0.98


@contextmanager
def _server(flavor: str, directory: Path) -> Iterator[LoggingServer]:
    with mariadb(directory) if flavor == "mariadb" else mysql(directory) as server:
        yield server


def _tool(flavor: str) -> list[str]:
    program = ["mariadb-binlog"] if flavor == "mariadb" else of_mysql("mysqlbinlog")
    return [*program, "--no-defaults"]


@pytest.mark.slow
@pytest.mark.parametrize("flavor", ["mariadb", "mysql"])
def test_random_options_of_fresh_logs(
    flavor: str, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """What differs is told with the command; figures are printed."""
    compared = identical = 0
    differing: list[str] = []
    with _server(flavor, tmp_path / "server") as server:
        data = next((tmp_path / "server").rglob("binlog.index")).parent
        for seed in _SEEDS:
            files = [data / name for name in make_log(server, seed)]
            for number in range(_COMMANDS):
                random = Random(f"{flavor}-{seed}-{number}")
                first = random.randrange(len(files))
                chosen = files[first : first + random.choice((1, 1, len(files)))]
                options = draw(random, Facts.of(flavor, [path.read_bytes() for path in chosen]))
                arguments = [*options, *map(str, chosen)]

                def run(print_log: Callable[[list[str]], tuple[int, bytes]]) -> tuple[int, bytes]:
                    # The text names the files of LOAD DATA, by what is free in their folder.
                    folder = tmp_path / "load"
                    folder.mkdir()
                    try:
                        return print_log([f"--local-load={folder}", *arguments])  # noqa: B023
                    finally:
                        for path in folder.iterdir():
                            path.unlink()
                        folder.rmdir()

                def by_tool(words: list[str]) -> tuple[int, bytes]:
                    done = subprocess.run(
                        [*_tool(flavor), *words], capture_output=True, check=False
                    )
                    return done.returncode, done.stdout

                def by_us(words: list[str]) -> tuple[int, bytes]:
                    capfdbinary.readouterr()
                    status = main(["cat", *words])
                    return status, capfdbinary.readouterr().out

                theirs, ours = run(by_tool), run(by_us)
                if ours == theirs:
                    identical += 1
                elif not is_compared(options, flavor):
                    continue
                elif ours[0] != theirs[0] or essence(ours[1], options, flavor) != essence(
                    theirs[1], options, flavor
                ):
                    differing.append(f"seed {seed}: {' '.join(arguments)}")
                compared += 1
    with capfdbinary.disabled():
        sys.stdout.write(
            f"\n{flavor}: {compared} texts, {identical} byte by byte, "
            f"{compared - identical - len(differing)} but for what is documented, "
            f"{len(differing)} differ: {differing}\n"
        )
    assert len(differing) <= compared * (1 - _LEAST_EQUAL), differing
