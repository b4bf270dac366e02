"""What the benchmark of least privilege is made of: a month of an estate, and a drawing."""
