"""Whole commands over whole folders of logs, process start included, and the same by SQL of DuckDB alone."""
