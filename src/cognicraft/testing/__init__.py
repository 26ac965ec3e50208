"""Conformance suites: what every implementation of a seam must do, importable by third parties."""
