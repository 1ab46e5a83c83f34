"""Bronze to silver: type records, remove duplicates, apply changes, quarantine the rest."""
