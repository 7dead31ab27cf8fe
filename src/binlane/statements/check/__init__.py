"""The effects that scripts would have on binlogs: reading and running scripts without a server, reports.

Pure: the caller reads the files. The answers themselves come from `session`.
"""
