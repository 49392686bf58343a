"""What runs on a live model and may use both the compiler and the runtime."""
