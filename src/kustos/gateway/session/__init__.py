"""Authorizes, forwards and answers the requests of one connection in order, within limits."""

from kustos.gateway.session import answer_budget, request_budget
from kustos.gateway.session.answer_budget import AnswerBudget
from kustos.gateway.session.client_session import LocalApis
from kustos.gateway.session.life_cycle import SLOT_LIFE
from kustos.gateway.session.request_budget import RequestBudget

__all__ = [
    "SLOT_LIFE",
    "AnswerBudget",
    "LocalApis",
    "RequestBudget",
    "answer_budget",
    "request_budget",
]
