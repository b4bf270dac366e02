"""Random requests against a model of a cluster, through the guard, without IO."""
