"""Algebra to SQL for an engine."""
