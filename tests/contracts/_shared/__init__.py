"""What every contract package holds a copy of, put there by ``staging``."""
