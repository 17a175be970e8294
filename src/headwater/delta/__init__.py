"""How a change of the inputs becomes a change of a view."""
