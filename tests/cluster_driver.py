"""What the driver of a cluster does in tests: `python -m tests.cluster_driver URL SETTINGS LOG`.

A process of its own, as one has a single Spark session. Prints what it found, as JSON. Functions of
this module reach workers by value, since it is the main one, so that workers need no test.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from binlane.errors import BinlaneError, PeerError
from binlane.tables.spark.spark_engine import SparkEngine
from binlane.tables.spark.spark_session import build_session


def where(_work: int) -> dict[str, Any]:
    """How a worker comes by binlane and its kernels."""
    import binlane  # noqa: PLC0415 - on a worker
    from binlane.log.kernels import load  # noqa: PLC0415 - on a worker

    return {
        "package": str(Path(binlane.__file__).absolute()),
        "kernels": str(load.FOLDER),
        "compiled": load.is_compiled(["scan", "rows"]),
        "python": sys.executable,
        "path": [str(Path(entry).absolute()) for entry in sys.path],
    }


def dying_once(work: str) -> int:
    """Takes its whole executor along, the first time."""
    mark = Path(work)
    if not mark.exists():
        mark.touch()
        process = os.getppid()
        while b"java" not in Path(f"/proc/{process}/comm").read_bytes():
            process = int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
        os.kill(process, 9)
    return len(work)


def passing_once(work: str) -> str:
    """Misses its server, the first time."""
    mark = Path(work)
    if not mark.exists():
        mark.touch()
        raise PeerError("gone", peer="mariadb://h:3306", phase="dump")
    return "came again"


def main(url: str, settings: str, log: str) -> None:
    """Try all of it in one session."""
    folder = Path(log).parent
    spark = build_session(url, settings=json.loads(settings), log_file=folder / "driver.log")
    engine = SparkEngine(spark)
    found: dict[str, Any] = {"where": list(engine.run(where, range(4)))}
    frame = spark.read.format("binlog").option("path", log).option("maxPartitionBytes", "2048")
    images = frame.load().where("_op IN ('insert', 'update', 'delete')")
    rows = images.select("_table", "_file", "_pos", "_row").collect()
    found["rows"] = sorted(list(row) for row in rows)
    found["dying"] = list(engine.run(dying_once, [str(folder / "dying")] * 4))
    found["passing"] = list(engine.run(passing_once, [str(folder / "passing")]))
    spark.sparkContext.pythonExec = str(folder / "other" / "bin" / "python")
    try:
        list(engine.run(where, [1]))
    except BinlaneError as error:
        found["other"] = [str(error), error.hint]
    spark.stop()
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
