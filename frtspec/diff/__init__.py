"""What an edit of specs means: facts between two sides, one table of rules that classes
them, acceptance bound to a pair of digests, and what follows for whoever pins them."""
