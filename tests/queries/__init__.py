"""Well-known queries as views."""
