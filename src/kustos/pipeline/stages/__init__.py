"""Pure functions from DataFrame to DataFrame, made for `DataFrame.transform`."""
