"""Seats on functions that a host looks up: bound, guarded and served, one module at a time."""
