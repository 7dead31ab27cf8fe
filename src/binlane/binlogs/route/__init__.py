"""`binlane route`: scoped binlogs from any binlog files, without a server.

Files go through `grouping.raw` and `routing.spans`, or through the reference where the kernels are
not compiled, into binlogs of the store.
"""
