"""SQL texts: what a statement reads, writes, calls and changes; and the objects that DDL makes.

`reading.read` gives the facts of one statement by its text alone. `catalog` keeps the tables,
views, triggers, routines and databases that a script of DDL makes; what a statement does through
them is asked in `policy`, what a binlog does with the answer in `scope`, `session` and `routing`.
"""
