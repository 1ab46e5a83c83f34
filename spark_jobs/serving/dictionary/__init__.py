"""The data dictionary: a page for each table, as a static site."""
