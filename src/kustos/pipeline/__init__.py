"""Analysis of access in bulk with PySpark: schemas, stages (DataFrame to DataFrame) and jobs (the only IO).

Importing this package imports no Spark: a command without Spark must still report what is missing.
"""
