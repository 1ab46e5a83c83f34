"""The data dictionary: a static site with a page per table."""
