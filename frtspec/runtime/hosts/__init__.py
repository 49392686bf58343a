"""What a live host is: its modules, weights, facts, places, and links between them."""
