"""Measurements of Tidemark, and the data and queries that they run on."""
