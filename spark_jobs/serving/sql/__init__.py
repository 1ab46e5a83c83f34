"""SQL for users and clients: sessions, checks, the endpoint, the tables of ``ops``."""
