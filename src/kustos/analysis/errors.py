"""What can be wrong with a question over whole ACL sets."""


class AnalysisError(ValueError):
    """The root of what this room raises; the text names the value and says what to do."""
