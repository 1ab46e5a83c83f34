"""SQL for people and clients: sessions, the gate, the endpoint, the tables of ``ops``."""
