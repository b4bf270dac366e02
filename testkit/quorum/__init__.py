"""Kafka's controllers: real ones, a scripted one and a model; and kustos nodes that follow them."""
