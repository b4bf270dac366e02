"""Table files read by column in the workers: texts stay dictionary codes, and nothing becomes a row."""

from kustos.pipeline.columns.codes import OR, Coded, coded, combined, grouped, joined
from kustos.pipeline.columns.file_parts import FilePart, chunk_of, chunks, parts_of

__all__ = [
    "OR",
    "Coded",
    "FilePart",
    "chunk_of",
    "chunks",
    "coded",
    "combined",
    "grouped",
    "joined",
    "parts_of",
]
