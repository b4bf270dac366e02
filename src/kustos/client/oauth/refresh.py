"""When to get the next token, as Kafka's ExpiringCredentialRefreshingLogin reckons it. Pure functions."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RefreshRules:
    """`sasl.login.refresh.*`: parts of a token's life, and seconds."""

    window_factor: float = 0.8
    window_jitter: float = 0.05
    min_period_seconds: int = 60
    buffer_seconds: int = 300


def refresh_at_ms(rules: RefreshRules, chance: float, now_ms: int, issued_ms: int, expires_ms: int) -> int:
    """Return the wall time at which to refresh a token; `chance` is from 0 to 1.

    At `window_factor` plus a part of `window_jitter` of its life, but `buffer_seconds` before its end, and
    `min_period_seconds` from now. A life too short for both is divided by factor and jitter alone.
    """
    part = rules.window_factor + rules.window_jitter * chance
    least_ms, buffer_ms = rules.min_period_seconds * 1000, rules.buffer_seconds * 1000
    if now_ms + least_ms + buffer_ms > expires_ms:
        return now_ms + int((expires_ms - now_ms) * part)
    proposed_ms = issued_ms + int((expires_ms - issued_ms) * part)
    return max(min(proposed_ms, expires_ms - buffer_ms), now_ms + least_ms)


def retry_pauses_ms(backoff_ms: int, backoff_max_ms: int) -> tuple[int, ...]:
    """Return the pauses between attempts: doubled each time, in sum at most `backoff_max_ms`, as in Kafka."""
    pauses: list[int] = []
    pause_ms = max(1, backoff_ms)
    while sum(pauses) + pause_ms <= backoff_max_ms:
        pauses.append(pause_ms)
        pause_ms *= 2
    return tuple(pauses)
