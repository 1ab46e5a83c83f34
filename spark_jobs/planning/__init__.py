"""Decides what to refresh, how and why: pure functions of what was observed.

Nothing here reads a log, a database or the clock.
"""
