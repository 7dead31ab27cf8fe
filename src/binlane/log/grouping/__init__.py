"""Events ⇄ event groups: walking a byte stream, delimiting groups, remembering table maps.

Pure: bytes come in as chunks that somebody else has read.
"""
