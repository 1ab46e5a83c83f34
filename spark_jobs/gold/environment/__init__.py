"""Gold views in a virtual environment: built beside production and promoted from there."""
