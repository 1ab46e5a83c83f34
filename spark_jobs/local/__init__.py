"""The local stack: real parts as supervised processes on loopback."""
