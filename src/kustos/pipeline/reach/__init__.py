"""Reach: what one compromised principal can get at, duties that must stay apart, and who feeds whom."""
