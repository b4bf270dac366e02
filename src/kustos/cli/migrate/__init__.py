"""`kustos migrate`: import ACLs and users from another system, after showing a plan."""
