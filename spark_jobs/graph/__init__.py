"""Dependencies between tables: SQL parsing with sqlglot, lineage, the manifest; no Spark."""
