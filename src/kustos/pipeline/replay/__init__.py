"""What-if replay: which recorded access other ACLs would decide otherwise."""
