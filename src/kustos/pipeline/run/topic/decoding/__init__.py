"""Record batches of a fetch -> offsets and values, as bytes; no IO and no Spark."""

from kustos.pipeline.run.topic.decoding.compression import UNCOMPRESSED_BYTES_MAX
from kustos.pipeline.run.topic.decoding.records import DecodedRecords, decode, next_offset

__all__ = ["UNCOMPRESSED_BYTES_MAX", "DecodedRecords", "decode", "next_offset"]
