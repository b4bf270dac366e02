"""ACLs, users and tokens as they were: a data source over metadata logs, and events judged by it."""
