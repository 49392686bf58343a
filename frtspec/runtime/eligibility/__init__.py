"""Whether a seat can and should be bound: its rules, its scheme, its decision."""
