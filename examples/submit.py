"""The `kustos` command for spark-submit: what follows the file's name are its words.

spark-submit --py-files kustos.zip submit.py pipeline run --config pipeline.yml
"""

import sys

from kustos.cli.run import run

if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
