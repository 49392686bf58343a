"""Gate harnesses: every impl on synthetic cases."""
