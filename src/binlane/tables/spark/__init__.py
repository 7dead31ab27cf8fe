"""binlogs in Spark: the `binlog` data source, and the pipeline that lands changes in Delta tables.

Modules that Spark's Python workers import stay light: nothing heavy at their top but PyArrow.
"""
