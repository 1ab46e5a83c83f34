"""Who depends on whom: SQL read with sqlglot, lineage, and the compiled manifest; no Spark."""
