"""Stages from DataFrame to DataFrame, and the parsers and columns that they are made of; none does IO.

A stage takes what it works on as its first argument, so that `DataFrame.transform` composes stages.
"""
