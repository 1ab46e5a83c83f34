"""Tidemark: gold views that are plain SQL, kept up to date, and provably equal to their SQL.

Read top to bottom, the packages follow the life of a change: ``definitions``, ``graph``,
``planning``, ``bronze``, ``silver``, ``gold``, ``quality``; ``storage`` is the only place that
speaks Delta, ``state`` holds what can be rebuilt, ``orchestration`` and ``cli`` call the rest.
"""
