"""Storage of tables: the files of each table, and changes that become other files.

A *format* (Delta, plain Parquet, Iceberg) knows a table's live files and commits others in their
place, all at once. The code above the format is the same for all formats: the store plans which
files a batch touches, tasks write other files in their place, and the store commits.
"""
