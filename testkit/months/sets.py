"""The months on which the detectors were developed, and the held-out months.

Both were fixed before any detector was tuned. The months of `HELD_OUT` have other seeds and other ranges:
other naming, time zones, address plans, rates, lengths and strengths. They are scored once.
"""

from datetime import date
from typing import Final

from testkit.months.values import Ranges

DEVELOPMENT_SEEDS: Final = (11, 12, 13, 14, 15, 16)
HELD_OUT_SEEDS: Final = (9001, 9002, 9003, 9004, 9005, 9006, 9007, 9008)

DEVELOPMENT: Final = Ranges(
    starts=(date(2026, 1, 5), date(2026, 4, 1), date(2026, 6, 20)),
    history_days=(60, 75),
    window_days=(28, 31),
    teams=(5, 8),
    services=(8, 12),
    topics=(5, 12),
    humans=(14, 18),
    separators=(".", "-"),
    zones=(0, 1, 2),
    networks=("10.{team}.{pool}.{pod}",),
    rate=(20, 400),
    noise=0.3,
    deploy_every_days=(6, 14),
    chronic_denials=(1, 30),
    blip_denials=(3, 30),
    look_alikes=(2, 4),
    labels_per_kind=(2, 4),
    foreign_topics=(1, 4),
    foreign_days=(1, 3),
    brute_attempts=(200, 4000),
    brute_operations=(3, 7),
    brute_hours=(1, 3),
    retries=(60, 1500),
    retry_hours=(3, 12),
    enumerated=(30, 150),
    night_hours=(1, 4),
    dormant_days=(35, 55),
)

HELD_OUT: Final = Ranges(
    starts=(date(2025, 9, 2), date(2025, 11, 13), date(2027, 2, 8)),
    history_days=(56, 90),
    window_days=(30, 35),
    teams=(7, 12),
    services=(5, 16),
    topics=(4, 18),
    humans=(12, 22),
    separators=(".", "_", "-"),
    zones=(-8, -5, 3, 5, 9),
    networks=("172.{team}.{pool}.{pod}", "fd00:{team:x}:0:{pool:x}::{pod:x}"),
    rate=(5, 900),
    noise=0.45,
    deploy_every_days=(4, 20),
    chronic_denials=(1, 60),
    blip_denials=(2, 40),
    look_alikes=(2, 6),
    labels_per_kind=(2, 5),
    foreign_topics=(1, 6),
    foreign_days=(1, 2),
    brute_attempts=(150, 9000),
    brute_operations=(3, 9),
    brute_hours=(1, 5),
    retries=(40, 3000),
    retry_hours=(2, 16),
    enumerated=(25, 250),
    night_hours=(1, 5),
    dormant_days=(30, 56),
)
