"""Runs programs, epoch after epoch."""
