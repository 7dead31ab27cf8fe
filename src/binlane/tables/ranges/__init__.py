"""What a reader of a log plans and reads: files anywhere, ranges of them, and what stands in those.

Used by Spark's data source and by landing; nothing here knows of either.
"""
