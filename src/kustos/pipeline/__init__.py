"""Analysis of access in bulk with PySpark: lines become tables, and tables answer questions.

Importing this package imports no Spark: a command without Spark must still report what is missing. `job.py`
of an analysis does its IO over the tables; its other modules take and return DataFrames or columns.
"""
