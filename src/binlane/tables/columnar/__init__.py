"""Rows events → Arrow record batches.

Pure: events come in, batches come out. Files, Spark and tables on disk live above.
"""
