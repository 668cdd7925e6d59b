"""Averaging of parameters over processes."""
