"""A real process that writes a store and is killed by SIGKILL."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from binlane.binlogs.store.settings import StoreSettings
from binlane.binlogs.store.store import Store
from binlane.binlogs.store.stored_groups import StoreReader
from binlane.binlogs.store.verify import verify
from tests.groups import create, sequences, stored

ROOT = Path(__file__).parents[2]
SETTINGS = StoreSettings(max_binlog_size_bytes=1 << 16, watermark_interval_s=0.01)
_WRITER = """
import sys
from itertools import count
from pathlib import Path
from tests.faults.test_store_kill import SETTINGS
from tests.groups import transaction
from binlane.binlogs.store.store import Store

with Store.open(Path(sys.argv[1]), SETTINGS) as store:
    binlog = store.binlogs["orders"]
    for n in count(1):
        binlog.append(transaction(n, size=n * 37 % 5000))
        if n % 3 == 0:
            binlog.sync()
            print(n, flush=True)
"""
_KILLS = 8


def test_what_was_synced_before_sigkill_is_there_and_nothing_is_doubled(tmp_path: Path) -> None:
    with Store.open(tmp_path, SETTINGS) as store:
        create(store)
    for kill in range(1, _KILLS + 1):
        with subprocess.Popen(
            [sys.executable, "-c", _WRITER, tmp_path], cwd=ROOT, stdout=subprocess.PIPE
        ) as writer:
            assert writer.stdout
            for line in writer.stdout:
                if int(line) > kill * 60:
                    writer.kill()
                    break
            last = max([int(line), *map(int, writer.stdout)])
        with Store.open(tmp_path, SETTINGS) as store:
            held = sequences(stored(store.binlogs["orders"]))
        assert held == list(range(1, len(held) + 1))
        assert len(held) >= last > kill * 60
    assert not list(verify([tmp_path]))


_HALF_DONE = """
import os
import signal
import sys
from pathlib import Path
from binlane.binlogs.store.catalog import Catalog
from binlane.binlogs.store.database import SqliteDatabase

database = SqliteDatabase.open(Catalog.path_in(Path(sys.argv[1])))
with database.transaction() as connection:
    connection.execute("PRAGMA cache_size = 1")  # so that pages reach the file before the end
    connection.execute("UPDATE binlogs SET name = 'other'")
    for number in range(500):
        connection.execute("INSERT INTO source VALUES (?, 'mariadb')", ("x" * 500,))
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_transaction_of_the_catalog_that_sigkill_cut_off_is_taken_back_by_who_reads(
    tmp_path: Path,
) -> None:
    with Store.open(tmp_path, SETTINGS) as store:
        create(store)
    subprocess.run([sys.executable, "-c", _HALF_DONE, tmp_path], cwd=ROOT, check=False)
    assert list(tmp_path.glob("*-journal")), "nothing was half done"
    assert StoreReader(tmp_path).names() == ("orders",)
    assert not list(verify([tmp_path]))
