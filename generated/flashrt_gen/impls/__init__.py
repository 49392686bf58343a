"""Impls: packed weights and the rungs that run on them."""
