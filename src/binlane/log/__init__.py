"""The log itself: its bytes, events and event groups."""
