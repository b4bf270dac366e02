"""The error of a sign-off."""


class SignoffError(Exception):
    """A review document, a decision on it, its signature or a choice of its rows is not valid."""
