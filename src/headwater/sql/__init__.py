"""From text to algebra."""
