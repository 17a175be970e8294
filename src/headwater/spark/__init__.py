"""The pipeline on Spark: sources, decoding, and one streaming query whose micro-batches are epochs."""
