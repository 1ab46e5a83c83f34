"""What to refresh, how and why: pure values and functions over what was observed.

Nothing here reads a log, a database or a clock.
"""
