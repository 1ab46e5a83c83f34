"""The local stack: processes, ports, certificates, health; and its form in containers."""
