"""Gateways in this process, before scripted brokers or a model."""
