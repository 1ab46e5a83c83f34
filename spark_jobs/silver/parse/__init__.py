"""Bytes to typed rows: documents, types, reasons, the silver SELECT."""
