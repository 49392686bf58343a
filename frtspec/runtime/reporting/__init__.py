"""A plan in words and as a document."""
