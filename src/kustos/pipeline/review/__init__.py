"""The access review: who holds which access by which ACLs, when it was last used, what a reviewer decides."""
