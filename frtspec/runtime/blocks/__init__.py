"""Seats that stand for a whole block, and the parts of it that stay the host's."""
