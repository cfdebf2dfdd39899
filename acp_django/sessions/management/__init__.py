"""Commands of the sessions app."""
