"""The web console: pages and the JSON API they use; its room is kept in the layers, and still empty."""
