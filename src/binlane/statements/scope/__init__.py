"""Which binlog logs what: scopes, definitions, the statements that make them, and their safety.

Pure. Definitions are kept by `store`, what a statement touches comes from `sql`.
"""
