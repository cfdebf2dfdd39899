"""Measures this package against the official SDKs, in one run with one raw driver: `python -m benchmarks`."""
