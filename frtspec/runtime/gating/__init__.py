"""The gates: kernel, boundary, host, latency, and the figures they compare."""
