"""The schemas of Kafka's messages, as text that takes no time to load: every API and version of 4.3.1.

`scripts.generate_schemas` writes the modules `apis_*` from kio's classes, and a test compares them.
"""

from kustos.wire.schemas.index import APIS, Kind, schema_of
from kustos.wire.schemas.schema import STRUCT, Field, MessageSchema, NoDefault, Struct

__all__ = ["APIS", "STRUCT", "Field", "Kind", "MessageSchema", "NoDefault", "Struct", "schema_of"]
