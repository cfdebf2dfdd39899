"""The client: drives any agent over any transport."""
