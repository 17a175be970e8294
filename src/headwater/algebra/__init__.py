"""The language of views: typed scalar and relational nodes, their text, and what they mean."""
