"""Audit in the forms in which it comes, made up: names by Zipf's law, as few are busy and many are not."""
