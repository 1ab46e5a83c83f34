"""The data dictionary: a page for each table, made from the declarations, in a static site."""
