"""Checks of the compiler on itself, at the borders between its phases."""

from frtspec.checks.legality import illegal

__all__ = ["illegal"]
