"""How the worker processes that serve one agent reach each other's connections."""
