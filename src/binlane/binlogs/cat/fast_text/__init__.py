"""The same text of large logs of both flavors, written by a kernel window by window.

Events that the kernel cannot print go to `cat.text`, in order and with its state kept in step.
"""
