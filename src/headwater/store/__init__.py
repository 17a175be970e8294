"""What a warehouse keeps on disk."""
