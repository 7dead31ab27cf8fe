"""Changes of a log one by one, as people read them: as they come, or those of one row.

No command line and no terminal: lines and JSON objects are given, others print them.
"""
