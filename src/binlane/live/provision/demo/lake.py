"""Spark's part of the demo, a program of its own: `python -m binlane.live.provision.demo.lake`.

It starts Spark at once, beside what the demo shows meanwhile, and begins when it is told to.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from binlane.errors import BinlaneError

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
        }
        report = land(source, target, engine=SparkEngine(spark))
    finally:
        spark.stop()
    return Landed(counted, report.rows, report.seconds, str(report.last_gtid))


if __name__ == "__main__":
    sys.exit(main())
