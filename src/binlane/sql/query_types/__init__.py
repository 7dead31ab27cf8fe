"""Types of the columns of a query, as CREATE TABLE … SELECT makes them.

`values` says what a type is; `expressions` reads one expression, by `arithmetic` and `functions`
(with `text_functions`); `fixed_functions` is what was measured of the servers' functions.
"""
