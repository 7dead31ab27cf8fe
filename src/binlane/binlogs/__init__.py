"""Binlogs: what each gets of an event group, their files, and their texts."""
