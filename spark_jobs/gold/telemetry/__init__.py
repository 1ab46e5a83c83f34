"""Metrics and lineage of refreshes, for other systems."""
