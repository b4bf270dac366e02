"""Stages from DataFrame to DataFrame, and their parsers and columns; none does IO.

A stage takes its DataFrame as the first argument, so that `DataFrame.transform` composes stages.
"""
