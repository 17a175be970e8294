"""Ways to maintain a view, one module each."""
