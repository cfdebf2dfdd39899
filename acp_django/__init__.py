"""Serve and drive Agent Client Protocol agents in a Django project; importing this package imports nothing."""
