"""Rebuild, reprocess, expire, forget, delete backfill: changes to a table beside its stream."""
