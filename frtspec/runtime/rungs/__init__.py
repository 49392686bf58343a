"""From a seat to the rung that runs it: packages, probes, ladders, decisions."""
