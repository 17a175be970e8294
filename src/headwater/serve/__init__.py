"""Reading views, also from other processes."""
