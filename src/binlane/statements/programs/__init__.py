"""Programs: CALL, stored functions, triggers, prepared and compound statements, run without a server.

What a program does to rows is not known; what it says is: its statements, in the order in which the
server would run them, with the values of its variables as far as they follow from the text.
"""
