"""The HTML report: rows collected within limits (model), drawn without scripts or fetches (render)."""
