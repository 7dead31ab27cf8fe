"""Servers and what they need: the set-up of a source, private servers, certificates, the demonstration."""
