"""The authorization of every API, as data: the rows of all subjects in one table.

ApiVersions does not offer an API without a row, and a request for it closes the connection: nothing is
forwarded unchecked. Derived from `KafkaApis` and `ControllerApis` of Kafka 4.4.0; the conformance tests
compare it with a real broker of 4.3.1. `common` has the checks and shapes that several rows use.
"""

from collections.abc import Mapping
from typing import Final

from kustos.protocol.rows.cluster import CLUSTER_ROWS
from kustos.protocol.rows.groups import GROUP_ROWS
from kustos.protocol.rows.identity import IDENTITY_ROWS
from kustos.protocol.rows.settings import SETTING_ROWS
from kustos.protocol.rows.shares import SHARE_ROWS
from kustos.protocol.rows.topics import TOPIC_ROWS
from kustos.protocol.rows.transactions import TRANSACTION_ROWS
from kustos.protocol.steps import Row
from kustos.wire import response_codec

ROWS: Final[tuple[Row, ...]] = (
    *GROUP_ROWS,
    *SHARE_ROWS,
    *TRANSACTION_ROWS,
    *TOPIC_ROWS,
    *SETTING_ROWS,
    *CLUSTER_ROWS,
    *IDENTITY_ROWS,
)

TABLE: Final[dict[int, Row]] = {int(row.api_key): row for row in ROWS}

OWN_APIS: Final = frozenset(int(row.api_key) for row in IDENTITY_ROWS)
"""The APIs for data that kustos itself stores (ACLs, users, tokens): a listener in mode `shadow` guards them,
too. Otherwise a client could use the shadow phase to grant itself permanent rights."""


def refusal_body(
    api_key: int, api_version: int, code: int, text: str, table: Mapping[int, Row] = TABLE
) -> bytes | None:
    """Return the encoded body that refuses an unread request with this code and text.

    None for an API without a row, and if the refusal would have to name the requested items.
    """
    row = table.get(api_key)
    if row is None:
        return None
    codec = response_codec(api_key, api_version)
    refusal = row.refusal.refuse_unread(codec, code, text)
    return None if refusal is None else codec.encode(refusal)


__all__ = ["OWN_APIS", "ROWS", "TABLE", "refusal_body"]
