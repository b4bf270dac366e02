"""ACLs for tests: written in one line or drawn, and an authorizer that is only the specification."""
