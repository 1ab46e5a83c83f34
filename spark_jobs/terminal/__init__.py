"""What verbs share on a terminal: consoles, steps, bytes as text, and the handler of crashes."""
