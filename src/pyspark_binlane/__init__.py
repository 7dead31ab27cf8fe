"""Makes `spark.read.format("binlog")` work wherever binlane is installed.

On the first look-up of a Python data source Spark imports every top-level module whose name begins
with `pyspark_` and registers its `DefaultSource`.
"""

from binlane.tables.spark.source import BinlogDataSource as DefaultSource

__all__ = ["DefaultSource"]
