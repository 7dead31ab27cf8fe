"""What a comparison of a binlog with its source costs, as JSON lines.

A private MariaDB gets an orders-like table of `--rows` rows and some 60 bytes a row, beside a
`binlane serve` with one binlog of it. The first round follows the whole binlog and reads the table;
the second reads the table alone, the third follows `--commits` small transactions before it. CPU seconds are those of the comparing process.

    python -m benchmarks.proof [--rows N] [--commits N]
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from binlane.live.provision.private_server import SOURCE_OPTIONS, PrivateServer
from tests.serve_process import ADMIN, PASSWORD, ServeProcess, create_account
from tests.servers import QUICK, execute

_TABLE = (
    "CREATE TABLE shop.orders (id INT PRIMARY KEY AUTO_INCREMENT, customer VARCHAR(60),"
    " total DECIMAL(12,2), placed DATETIME, state INT)"
)
_FILL = (
    "INSERT INTO shop.orders (customer, total, placed, state) SELECT CONCAT('customer ', seq),"
    " seq / 7, '2026-01-01' + INTERVAL seq SECOND, seq % 5 FROM shop.seq_1_to_{rows}"
)
_COMMITS = (
    "BEGIN NOT ATOMIC FOR i IN 1..{commits} DO"
    " UPDATE shop.orders SET state = state + 1 WHERE id = i; END FOR; END"
)


def main() -> None:
    """Measure three rounds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--commits", type=int, default=20_000)
    given = parser.parse_args()
    rows, commits = given.rows, given.commits
    with tempfile.TemporaryDirectory() as folder:
        source = PrivateServer.start(Path(folder), name="source", options=(*QUICK, *SOURCE_OPTIONS))
        try:
            create_account(source)
            execute(source, f"GRANT SELECT ON *.* TO '{ADMIN}'@'%'")
            with ServeProcess(Path(folder) / "serve", source) as serve:
                serve.execute_as_root("CREATE BINLOG 'orders' LOG(shop)")
                execute(source, "CREATE DATABASE shop", _TABLE, _FILL.format(rows=rows))
                serve.wait_until_complete("orders", timeout_s=600)
                time.sleep(2)  # until the mark is saved
                for what in ("the whole binlog, and the table", "the table alone"):
                    print(json.dumps({"what": what, **_round(serve, source, rows)}), flush=True)
                execute(source, _COMMITS.format(commits=commits))
                serve.wait_until_complete("orders", timeout_s=600)
                time.sleep(2)
                what = f"{commits} transactions of one UPDATE, and the table"
                print(json.dumps({"what": what, **_round(serve, source, rows)}), flush=True)
        finally:
            source.kill()


def _round(serve: ServeProcess, source: PrivateServer, rows: int) -> dict[str, object]:
    secret = serve.directory / "secret"
    secret.write_text(PASSWORD)
    url = f"mariadb://{ADMIN}@127.0.0.1:{source.port}?password-file={secret}"
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(
        [
            *(sys.executable, "-m", "binlane", "verify", f"{serve.data_dir}#orders"),
            *("--source", url, "--json"),
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    wall_s = time.monotonic() - begun
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    verdict = json.loads(done.stdout)
    assert (verdict["finding"], verdict["rows"]) == ("equal", rows), verdict
    return {
        "rows": rows,
        "cpu_s": round(cpu_s, 2),
        "wall_s": round(wall_s, 2),
        "rows_a_cpu_s": round(rows / cpu_s),
        "memory_mb": after.ru_maxrss // 1024,
    }


if __name__ == "__main__":
    main()
