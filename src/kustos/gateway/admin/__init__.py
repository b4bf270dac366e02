"""The admin listener: what a node answers about itself, to whoever runs it."""
