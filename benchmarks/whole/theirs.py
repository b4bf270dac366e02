"""Their side: what somebody writes in an afternoon with DuckDB. One process over all cores, and no JVM.

    python -m benchmarks.whole.theirs ingest FOLDER     audit/ into theirs/events and theirs/rollup, by day
    python -m benchmarks.whole.theirs replay FOLDER     the roll-up decided by candidate.jsonl, as joins

prints what was found as one JSON line. The ingestion finds no duplicates and knows one form of lines; the
replay knows the one range of hosts that these ACLs have, and no super users.
"""

import json
import sys
from pathlib import Path
from typing import Any, Final

import duckdb

LINE: Final = (
    r"^\[([^\]]{19}),(\d{3})\] (?:INFO|DEBUG) Principal = (.+) is (Allowed|Denied) operation = (\w+) "
    r"from host = (\S+) on resource = (\w+):LITERAL:(.+) for request = (\w+) with resourceRefCount = (\d+) "
    r"based on rule (.+) \(kafka\.authorizer\.logger\)$"
)

INGEST: Final = """
    CREATE TABLE parsed AS SELECT filename, regexp_extract(line, $line, ['time', 'ms', 'principal', 'result',
            'operation', 'host', 'type', 'name', 'request', 'count', 'rule']) AS f
        FROM read_csv($files, columns = {'line': 'VARCHAR'}, delim = '\\x01', quote = '', escape = '',
            header = false, auto_detect = false, filename = true, max_line_size = 1000000);
    CREATE TABLE events AS SELECT (f.time || '.' || f.ms)::TIMESTAMP AS time, f.principal AS principal,
            f.host AS host, upper(f.operation) AS operation, upper(f.type) AS resource_type,
            f.name AS resource_name, f.request AS api_name, f.count::INTEGER AS reference_count,
            CASE f.result WHEN 'Allowed' THEN 'ALLOWED' ELSE 'DENIED' END AS decision, f.rule AS rule,
            filename AS source_file, (f.time[:10])::DATE AS day
        FROM parsed;
    DROP TABLE parsed;
    COPY events TO '{out}/events' (FORMAT parquet, PARTITION_BY (day));
    COPY (SELECT day, principal, host, operation, resource_type, resource_name, api_name, decision, rule,
            count(*) AS event_count, sum(reference_count) AS reference_count, min(time) AS first_time,
            max(time) AS last_time FROM events GROUP BY ALL)
        TO '{out}/rollup' (FORMAT parquet, PARTITION_BY (day));"""

REPLAY: Final = """
    CREATE TABLE uses AS SELECT row_number() OVER () AS id, * FROM (
        SELECT principal, host, operation, resource_type, resource_name, decision,
            sum(event_count) AS event_count FROM read_parquet($rollup) GROUP BY ALL);
    CREATE TABLE acls AS SELECT resource_type AS type, resource_name AS name, pattern_type AS pattern,
            principal, host, operation, permission_type AS permission FROM read_json($acls);
    CREATE TABLE answers(operation VARCHAR, permission VARCHAR, by_operation VARCHAR);
    INSERT INTO answers SELECT o, p, o FROM (VALUES ('READ'), ('WRITE'), ('DESCRIBE'), ('ALTER')) a(o),
            (VALUES ('ALLOW'), ('DENY')) b(p)
        UNION ALL SELECT o, p, 'ALL' FROM (VALUES ('READ'), ('WRITE'), ('DESCRIBE'), ('ALTER')) a(o),
            (VALUES ('ALLOW'), ('DENY')) b(p)
        UNION ALL SELECT 'DESCRIBE', 'ALLOW', o FROM (VALUES ('READ'), ('WRITE'), ('DELETE'), ('ALTER')) a(o);
    CREATE TABLE matched AS
        SELECT u.id, a.* FROM uses u JOIN acls a
            ON a.pattern = 'LITERAL' AND a.type = u.resource_type AND a.name = u.resource_name
        UNION ALL SELECT u.id, a.* FROM uses u JOIN acls a
            ON a.pattern = 'LITERAL' AND a.type = u.resource_type AND a.name = '*'
        UNION ALL SELECT u.id, a.* FROM uses u
            JOIN (SELECT DISTINCT length(name) AS size FROM acls WHERE pattern = 'PREFIXED') sizes
                ON sizes.size <= length(u.resource_name)
            JOIN acls a ON a.pattern = 'PREFIXED' AND a.type = u.resource_type
                AND a.name = u.resource_name[:sizes.size] AND a.principal IN (u.principal, 'User:*');
    CREATE TABLE decided AS SELECT u.*, coalesce(bool_or(permission = 'ALLOW'), false)
            AND NOT coalesce(bool_or(permission = 'DENY'), false) AS is_allowed
        FROM uses u LEFT JOIN (SELECT m.id, m.permission FROM matched m JOIN uses v USING (id)
            JOIN answers r ON r.operation = v.operation AND r.permission = m.permission
                AND r.by_operation = m.operation
            WHERE m.principal IN (v.principal, 'User:*') AND (m.host IN (v.host, '*')
                OR m.host = '10.0.0.0/8' AND v.host LIKE '10.%')) d USING (id)
        GROUP BY ALL;"""

FLIPS: Final = """
    SELECT CASE WHEN decision = 'ALLOWED' THEN 'LOST' ELSE 'GAINED' END, count(*), sum(event_count)
    FROM decided WHERE (decision = 'ALLOWED') <> is_allowed GROUP BY ALL ORDER BY ALL"""


def ingest(folder: Path) -> dict[str, Any]:
    """Write events and roll-up; return how many of each."""
    database = _database()
    statements = INGEST.replace("{out}", str(folder / "theirs")).replace("$line", f"'{LINE}'")
    statements = statements.replace("$files", f"'{folder / 'audit' / '*'}'")
    (folder / "theirs").mkdir()
    database.execute(statements)
    events = database.execute("SELECT count(*) FROM events WHERE principal <> ''").fetchall()[0][0]
    rollup = str(folder / "theirs" / "rollup" / "*" / "*.parquet")
    return {"events": events, "rollup": database.execute(f"SELECT count(*) FROM '{rollup}'").fetchall()[0][0]}


def replay(folder: Path) -> dict[str, Any]:
    """Return the flips by kind: how many uses, and how many events."""
    database = _database()
    statements = REPLAY.replace("$rollup", f"'{folder / 'theirs' / 'rollup' / '*' / '*.parquet'}'")
    database.execute(statements.replace("$acls", f"'{folder / 'candidate.jsonl'}'"))
    return {kind: [uses, int(events)] for kind, uses, events in database.execute(FLIPS).fetchall()}


def _database() -> duckdb.DuckDBPyConnection:
    database = duckdb.connect()
    database.execute("SET enable_progress_bar = false; SET preserve_insertion_order = false")
    return database


def main() -> None:
    step, folder = sys.argv[1:]
    print(json.dumps({"ingest": ingest, "replay": replay}[step](Path(folder))))


if __name__ == "__main__":
    main()
