"""Seats that keep what the host computes at a slower cadence than it asks for it."""
