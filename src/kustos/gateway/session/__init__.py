"""The requests of one connection: decided, handed over and answered in order, within limits."""

from kustos.gateway.session import answer_budget
from kustos.gateway.session.answer_budget import AnswerBudget
from kustos.gateway.session.parts import LocalApis

__all__ = [
    "AnswerBudget",
    "LocalApis",
    "answer_budget",
]
