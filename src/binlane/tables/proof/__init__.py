"""The proof that a binlog says of its tables what a server has in them.

Of each table there is a digest of the state that the binlog describes. It is held against the rows
that the source, or a replica, has. Nothing is written to a server, and no lock is taken.
"""
