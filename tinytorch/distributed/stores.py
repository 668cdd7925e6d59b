"""Stores."""

__all__: list[str] = []
