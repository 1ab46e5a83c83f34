"""What users read: SQL, the status page, reports, the data dictionary."""
