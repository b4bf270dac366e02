"""What the benchmark of logins is made of: what a client says, and many clients at once in one process."""
