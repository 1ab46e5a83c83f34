"""Reports of the command line: balances, status, sinks, explanations, lint."""
