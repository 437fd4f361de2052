"""Repositories that are traps, and servers that are let loose in them (T46, TRUST-8)."""
