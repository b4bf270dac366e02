"""Requests that wait at a broker, and the rights that are taken away meanwhile."""
