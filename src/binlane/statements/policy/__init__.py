"""In which logging format a statement is logged, or why it is refused.

`resolution` finds a statement's tables through views, routines, triggers and foreign keys,
`procedure` decides, `reasons` and `refusals` have the servers' texts and numbers.

Pure. Which binlogs a statement concerns is decided in `scope`.
"""
