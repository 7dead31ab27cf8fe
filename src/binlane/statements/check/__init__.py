"""What scripts would do to binlogs: reading them, running them without a server, and the reports.

Pure: whoever calls reads the files. The answers themselves come from `session`.
"""
