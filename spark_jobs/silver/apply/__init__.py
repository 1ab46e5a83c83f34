"""Applies a batch to a silver table: dispositions, current rows, events, SCD type 2."""
