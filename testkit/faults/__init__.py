"""Faults that a cluster behind kustos must survive: `python -m testkit.faults --minutes 30 --seed 5`.

Real clients, a relay, kustos with two workers, another relay, three brokers. A seeded schedule kills and
pauses brokers and workers, cuts and slows connections. The relay at the brokers decides about each request
again; at the end every record that was acknowledged is looked for in the logs, and what the node took of
memory, descriptors and tasks is held against what it took after the first round.
"""
