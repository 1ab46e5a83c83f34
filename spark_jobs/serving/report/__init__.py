"""Reports behind the verbs: balances, status, sinks, explanations, lint."""
