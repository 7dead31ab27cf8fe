"""The text of large logs of both flavors, as `cat.text` prints it, written by a kernel window by window.

Events that the kernel cannot print go to `cat.text`, in order and with its state kept in step.
"""
