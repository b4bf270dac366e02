"""A line of audit text becomes columns: Kafka's text in any layout of log4j, kustos' and Confluent's JSON.

What may live here: grammars, readers over Arrow batches, the ids of lines, the cluster of a line. No IO.
"""
