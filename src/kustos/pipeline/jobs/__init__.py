"""The jobs, which read files, run the stages, and write tables and pages. Everything else is a stage.

Public front: `run_pipeline` keeps the tables, `run_access_report` reports on a folder without any.
"""

from kustos.pipeline.inputs.pieces import DamagedFileError
from kustos.pipeline.jobs.access_report import STEPS, ReportSummary, run_access_report, write_tables
from kustos.pipeline.jobs.access_review import REVIEW_STEPS, ReviewQuestion, run_review
from kustos.pipeline.jobs.inputs import FoundFiles, find_new_files
from kustos.pipeline.jobs.judging import JUDGE_STEPS, JudgeQuestion, replay_of_tables, run_judgement
from kustos.pipeline.jobs.reading import read_lines
from kustos.pipeline.jobs.run import run_pipeline
from kustos.pipeline.jobs.tables_report import REPORT_STEPS, TablesReportSummary, run_tables_report
from kustos.pipeline.progress import Progress

__all__ = [
    "JUDGE_STEPS",
    "REPORT_STEPS",
    "REVIEW_STEPS",
    "STEPS",
    "DamagedFileError",
    "FoundFiles",
    "JudgeQuestion",
    "Progress",
    "ReportSummary",
    "ReviewQuestion",
    "TablesReportSummary",
    "find_new_files",
    "read_lines",
    "replay_of_tables",
    "run_access_report",
    "run_judgement",
    "run_pipeline",
    "run_review",
    "run_tables_report",
    "write_tables",
]
