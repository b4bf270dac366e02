"""The node: settings and composition root, the only place that wires the rooms together."""
