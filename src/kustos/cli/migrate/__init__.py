"""`kustos migrate`: import ACLs and users from another system, after showing a plan."""

import typer

from kustos.cli.migrate import commands
from kustos.cli.options import register

app = typer.Typer(help="Migrate ACLs and users from Kafka or ZooKeeper.", no_args_is_help=True)
register(app, "zookeeper", commands.zookeeper, commands.ZOOKEEPER_EXAMPLES)
register(app, "kafka", commands.kafka, commands.KAFKA_EXAMPLES)
