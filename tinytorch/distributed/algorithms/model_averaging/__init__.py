"""Means of parameters over processes."""
