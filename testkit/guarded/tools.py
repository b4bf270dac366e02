"""Kafka's tools, run against a guarded cluster as one of its users."""

from collections.abc import Mapping
from pathlib import Path

from testkit.guarded.cluster import GuardedCluster
from testkit.kafka import KafkaTools, ToolResult
from testkit.kafka.java import command
from testkit.kafka.tools import full_name, write_properties
from testkit.processes import Server
from testkit.waiting import wait_until


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
        return self.tools.run(tool, *self._common(user, flag, settings), *arguments)

    def says(self, words: str, tool: str, user: str, *arguments: str) -> str:
        """Run a tool until it says these words, end it, and return all that it has said.

        One that ends without them is started again.
        """
        line = command(
            full_name(tool), *self._common(user, "--command-config", {}), *arguments, archive_name="tools"
        )
        output = self.directory / f"{tool}-{user}.log"
        server = Server(tool, line, output)

        def said() -> bool:
            nonlocal server
            ended = not server.running
            if words in output.read_text():
                return True
            if ended:
                server = Server(tool, line, output)
            return False

        try:
            wait_until(said, what=f"`{words}` is said\n{server.tail()}")
        finally:
            server.kill()
        return output.read_text()

    def _common(self, user: str, flag: str, settings: Mapping[str, str]) -> tuple[str, ...]:
        file = self.directory / f"{user}.properties"
        properties = {name.replace("_", "."): value for name, value in settings.items()}
        write_properties(file, self.scene.java(user) | properties)
        return ("--bootstrap-server", self.scene.bootstrap, flag, str(file))
