"""Table files read by column where they are asked: texts stay numbers, and rows are never made of them."""

from kustos.pipeline.columns.coding import OR, Coded, coded, combined, grouped, joined
from kustos.pipeline.columns.parts import FilePart, parts_of
from kustos.pipeline.columns.reading import chunks

__all__ = ["OR", "Coded", "FilePart", "chunks", "coded", "combined", "grouped", "joined", "parts_of"]
