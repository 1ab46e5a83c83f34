"""The command line ``tidemark``: one module per verb, and nothing that another layer needs."""
