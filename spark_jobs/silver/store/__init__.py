"""A silver table's helper tables, their evolution, releases and lock."""
