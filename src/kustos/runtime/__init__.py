"""The only home of time and randomness: real here, replaceable in tests."""

from kustos.runtime.clock import Clock, SystemClock
from kustos.runtime.entropy import Entropy, SystemEntropy

__all__ = ["Clock", "Entropy", "SystemClock", "SystemEntropy"]
