"""Checks silver against bronze and against the source database."""
