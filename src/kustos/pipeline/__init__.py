"""Access studied in bulk with PySpark: schemas, stages (DataFrame to DataFrame) and jobs (the only IO).

Importing this package imports no Spark: the commands must be able to say what is missing.
"""
