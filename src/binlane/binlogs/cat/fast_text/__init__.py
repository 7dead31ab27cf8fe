"""The same text of large logs of both flavors, written by a kernel window by window.

What the kernel cannot print goes to `cat.text`, in order and with its state kept in step.
"""
