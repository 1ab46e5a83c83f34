"""Tidemark: gold views that are plain SQL, kept up to date, and provably equal to their SQL.

Read top to bottom, the packages follow the path of a change: ``definitions``, ``graph``,
``planning``, ``bronze``, ``silver``, ``gold``, ``quality``. Only ``storage`` reads and writes
Delta tables, ``state`` is the control database, ``orchestration`` and ``cli`` call the rest.
"""
