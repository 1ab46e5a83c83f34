"""Bytes to typed rows: documents, types, quarantine reasons, the silver SELECT."""
