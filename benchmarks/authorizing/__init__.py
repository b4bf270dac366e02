"""Parts of the authorizer's benchmark: what is asked, who answers, what changes, what it weighs."""
