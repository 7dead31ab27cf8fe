"""The decision in which logging format a statement is logged, or why it is refused.

`resolution` finds a statement's tables through views, routines, triggers and foreign keys,
`procedure` decides, `reasons` and `refusals` have the servers' texts and numbers.

The package is pure. `scope` decides which binlogs a statement concerns.
"""
