"""Runs: audit files and topics into the tables, once or as a stream, and reports on them. The IO of a run.

What may live here: the order of a run's steps. Files, topics and streams have folders of their own.
"""

from kustos.pipeline.run.access_report import STEPS, ReportSummary, run_access_report, write_tables
from kustos.pipeline.run.files import DamagedFileError, FoundFiles, find_new_files
from kustos.pipeline.run.runs import run_pipeline
from kustos.pipeline.run.tables_report import REPORT_STEPS, TablesReportSummary, run_tables_report

__all__ = [
    "REPORT_STEPS",
    "STEPS",
    "DamagedFileError",
    "FoundFiles",
    "ReportSummary",
    "TablesReportSummary",
    "find_new_files",
    "run_access_report",
    "run_pipeline",
    "run_tables_report",
    "write_tables",
]
