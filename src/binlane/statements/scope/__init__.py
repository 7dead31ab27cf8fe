"""Scopes of binlogs: definitions, the statements that make them, and the safety of statements.

The package is pure. `store` keeps the definitions; `sql` tells the objects that a statement
touches.
"""
