"""Compares a changed project with what runs; pure functions without files, tables or network."""
