"""Serve and drive Agent Client Protocol agents from a FastAPI application."""
