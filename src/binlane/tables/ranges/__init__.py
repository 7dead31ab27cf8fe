"""Planning and reading of logs: files anywhere, ranges of them, and the items in ranges.

Used by Spark's data source and by landing; nothing in this package knows of either.
"""
