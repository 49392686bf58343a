"""Calibration as data: measured, saved, keyed, read back, united over ranks."""
