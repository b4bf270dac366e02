"""Plans: the outcome of a decided request, kept for requests that repeat it.

One comparison of versions shows that no ACL has changed since. As for any request, every decision is audited
before the request is sent.
"""

from kustos.protocol.plans.memory import KeptPlans, RecalledDecider
from kustos.protocol.plans.passed import Passed, PassOn, pass_any
from kustos.protocol.plans.plan import Plan
from kustos.protocol.plans.produce import ProduceShape

__all__ = ["KeptPlans", "PassOn", "Passed", "Plan", "ProduceShape", "RecalledDecider", "pass_any"]
