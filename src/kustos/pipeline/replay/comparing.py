"""Two decisions of each question in one pass, and the rules only where they differ: most rows do not."""

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.types import StringType, StructField, StructType

from kustos.pipeline.deciding import ShippedAcls
from kustos.pipeline.deciding.questions import answered, evaluated_once
from kustos.pipeline.schemas import QUESTION_COLUMNS

ALLOWED: Final = "ALLOWED"
OUTCOMES: Final = ("from_decision", "from_rule", "to_decision", "to_rule")

_SCHEMA: Final = StructType([StructField(name, StringType()) for name in OUTCOMES])
_KEY: Final = "_outcome"


def compared_with_recorded(questions: DataFrame, candidate: ShippedAcls) -> DataFrame:
    """Return rows that have `from_decision` and `from_rule` with `to_decision`, and `to_rule` if it flips."""

    def judge(
        principal: pa.Array,
        host: pa.Array,
        operation: pa.Array,
        resource_type: pa.Array,
        name: pa.Array,
        before: pa.Array,
    ) -> pa.Array:
        columns = [principal, host, operation, resource_type, name]
        [after] = answered(candidate, columns, with_rule=False)
        nothing = pa.nulls(len(after), pa.string())
        rules = _rules(candidate, columns, _flipped(before, after))
        return pa.StructArray.from_arrays([before, nothing, after, rules], names=OUTCOMES)

    return _unpacked(questions, evaluated_once(judge, _SCHEMA, *QUESTION_COLUMNS, OUTCOMES[0]), OUTCOMES[2:])


def compared(questions: DataFrame, baseline: ShippedAcls, candidate: ShippedAcls) -> DataFrame:
    """Return rows with both sets' decisions, and the rules where one allows and the other does not."""

    def judge(
        principal: pa.Array, host: pa.Array, operation: pa.Array, resource_type: pa.Array, name: pa.Array
    ) -> pa.Array:
        columns = [principal, host, operation, resource_type, name]
        [before] = answered(baseline, columns, with_rule=False)
        [after] = answered(candidate, columns, with_rule=False)
        flipped = _flipped(before, after)
        outcomes = [before, _rules(baseline, columns, flipped), after, _rules(candidate, columns, flipped)]
        return pa.StructArray.from_arrays(outcomes, names=OUTCOMES)

    return _unpacked(questions, evaluated_once(judge, _SCHEMA, *QUESTION_COLUMNS), OUTCOMES)


def _flipped(before: pa.Array, after: pa.Array) -> pa.Array:
    """Return whether one allows and the other does not; a null allows nothing."""
    return pc.xor(pc.fill_null(pc.equal(before, ALLOWED), False), pc.equal(after, ALLOWED))


def _rules(shipped: ShippedAcls, columns: list[pa.Array], wanted: pa.Array) -> pa.Array:
    """Return the rules of the wanted rows, null for the others."""
    rows = pc.indices_nonzero(wanted)
    if not len(rows):
        return pa.nulls(len(wanted), pa.string())
    _, rules = answered(shipped, [column.take(rows) for column in columns], with_rule=True)
    return pc.replace_with_mask(pa.nulls(len(wanted), pa.string()), wanted, rules)


def _unpacked(questions: DataFrame, outcome: Column, names: tuple[str, ...]) -> DataFrame:
    found = questions.withColumn(_KEY, outcome)
    return found.withColumns({name: sql.col(_KEY).getField(name) for name in names}).drop(_KEY)
