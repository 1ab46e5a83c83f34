"""Reads and checks the project's files; no Spark, no SQL semantics."""
