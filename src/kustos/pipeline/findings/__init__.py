"""Unused, redundant, shadowed and orphaned ACLs: each with its evidence and whether it can safely go."""
