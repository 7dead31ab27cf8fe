"""Landings that are large: their memory must not be."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.landed import delta_rows
from tests.servers import ServerFactory, execute

ROWS = 6_000_000
_SCRIPT = """
import json, resource, sys
from binlane import api
report = api.land(sys.argv[1], sys.argv[2])
own, others = (resource.getrusage(who).ru_maxrss >> 10
               for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
print(json.dumps({"rows": report.rows, "bytes": report.size_bytes, "own": own, "others": others}))
"""


@pytest.mark.slow
def test_a_large_transaction_lands_in_little_memory(servers: ServerFactory, tmp_path: Path) -> None:
    server = servers.start("source")
    execute(
        server,
        "CREATE DATABASE shop",
        "CREATE TABLE shop.t (id INT PRIMARY KEY, a BIGINT, b VARCHAR(60))",
        f"INSERT INTO shop.t SELECT seq, seq * 7, CONCAT('some text, ', seq, repeat('x', 30)) "
        f"FROM shop.seq_1_to_{ROWS}",
        "FLUSH BINARY LOGS",
    )
    log = max(server.data_directory.glob("binlog.0*"), key=lambda path: path.stat().st_size)
    assert log.stat().st_size > 300 << 20
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT, str(log), str(tmp_path / "lake")],
        capture_output=True,
        text=True,
        check=True,
        timeout=500,
    )
    found = json.loads(done.stdout)
    assert found["rows"] == ROWS
    assert max(found["own"], found["others"]) < 700, found
    assert delta_rows(tmp_path / "lake/current/shop/t").num_rows == ROWS
