"""The access review: which ACLs grant which access to whom, its last use, and ACLs that nobody needs.

Each module is imported by itself: some load the history of a metadata log. Reviewers decide without Spark, by
`kustos.signoff`.
"""
