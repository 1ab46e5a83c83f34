"""The tables of a silver table, their evolution, releases and lock."""
