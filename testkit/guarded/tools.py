"""Kafka's tools, run against a guarded cluster as one of its users."""

from pathlib import Path

from testkit.guarded.cluster import GuardedCluster
from testkit.kafka import KafkaTools, ToolResult
from testkit.kafka.tools import write_properties


class GuardedTools:
    """Runs a tool with a user's settings, in files of `directory`."""

    def __init__(self, scene: GuardedCluster, tools: KafkaTools, directory: Path) -> None:
        self.scene = scene
        self.tools = tools
        self.directory = directory

    def __call__(
        self, tool: str, user: str, *arguments: str, flag: str = "--command-config", **settings: str
    ) -> ToolResult:
        """Run a tool to its end; `settings` of its client have `_` in the place of dots."""
        file = self.directory / f"{user}.properties"
        properties = {name.replace("_", "."): value for name, value in settings.items()}
        write_properties(file, self.scene.java(user) | properties)
        common = ("--bootstrap-server", self.scene.bootstrap, flag, str(file))
        return self.tools.run(tool, *common, *arguments)
