"""Two sides that must answer alike, and the requests that both get."""
