"""How tables are kept: which files are a table's, and how changes become other files.

A *format* (Delta, plain Parquet, Iceberg) knows a table's live files and commits others in their
place, all at once. What is above it is the same for all of them: the store plans which files a
batch touches, tasks write what stands in their place, and the store commits.
"""
