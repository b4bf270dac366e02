"""Programs that run as if optional packages were not installed."""

import json
from typing import Final

SPARK: Final = ("deltalake", "numpy", "pandas", "py4j", "pyarrow", "pyspark")
"""The packages of an installation with Spark that have native code or a JVM."""

WITHOUT_SPARK: Final = f"""\
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {json.dumps(SPARK)}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Missing())
"""
"""The beginning of a program in which importing one of these packages fails."""
