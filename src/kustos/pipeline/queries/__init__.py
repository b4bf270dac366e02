"""Sums and first rows of tables, from DataFrame to DataFrame: what pages and terminals show. No IO."""
