"""One event field by field: found in its file, its fields found in its bytes, as text or JSON.

All of this is pure; nothing here reads files.
"""
