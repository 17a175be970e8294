"""Maintenance programs as inert data: built here, run by the engine, printed by EXPLAIN."""
