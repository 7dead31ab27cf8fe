"""A log's changes as tables: Arrow, ranges of a log, landed tables, Spark."""
