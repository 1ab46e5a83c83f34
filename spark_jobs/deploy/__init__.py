"""What a change of the project means for what runs: pure comparison, no file, table or network."""
