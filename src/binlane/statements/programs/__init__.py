"""Programs: CALL, stored functions, triggers, prepared and compound statements, run without a server.

The rows that a program changes are not known; its statements are, in the order in which the server would run
them, with the values of its variables as far as those follow from the text.
"""
