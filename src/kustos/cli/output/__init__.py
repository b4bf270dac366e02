"""How commands print, independent of meaning: text and tables for people, rows and documents for all.

A command with rows declares its `Columns` and passes them to `print_rows`. A command with only a document
prints its own text, or the document with `print_document`. No command handles terminals or widths.
"""

from kustos.cli.output.documents import OutputFormat, document_text, print_document, print_error
from kustos.cli.output.rows import Column, ColumnFormats, Columns, print_rows, words_of
from kustos.cli.output.streams import StreamFormat, stream_document, stream_rows
from kustos.cli.output.tables import ALIGNED_WIDTH_MAX, Cell, Words, print_table, table_lines
from kustos.cli.output.text import (
    counted,
    is_terminal,
    print_lines,
    print_notice,
    print_paragraph,
    printable,
    shown_width,
)

__all__ = [
    "ALIGNED_WIDTH_MAX",
    "Cell",
    "Column",
    "ColumnFormats",
    "Columns",
    "OutputFormat",
    "StreamFormat",
    "Words",
    "counted",
    "document_text",
    "is_terminal",
    "print_document",
    "print_error",
    "print_lines",
    "print_notice",
    "print_paragraph",
    "print_rows",
    "print_table",
    "printable",
    "shown_width",
    "stream_document",
    "stream_rows",
    "table_lines",
    "words_of",
]
