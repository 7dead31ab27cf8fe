"""The parsed form of a statement: nodes with their places in the text.

`parser` makes them, once for all statements that differ only in literals; everything that is asked
of a statement later is a fold over them. They are values: nothing changes them once they are made.
Names stand as written, without quotes; that a name without a database means the default one is
told where that is known.
"""
