"""The rows of the authorization table by subject; `common` has the checks and shapes that several use."""
