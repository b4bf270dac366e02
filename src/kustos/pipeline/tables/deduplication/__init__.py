"""Deduplication: each line of input becomes an event, a duplicate or a quarantined line; none is lost.

What may live here: keys of lines, outcomes of those that share one, and their use on the files of a run.
"""
