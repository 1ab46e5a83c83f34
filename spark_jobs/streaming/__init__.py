"""The streaming application: keeps streaming queries running and reports their progress."""
