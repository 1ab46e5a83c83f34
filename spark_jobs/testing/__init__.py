"""Unit tests of gold views and silver tables: runs case files over real Delta tables."""
