"""Measuring: datasets, metrics, and the harness that runs them."""
