"""A real receiver of syslog on loopback: rsyslogd, by TCP, TLS, UDP and a Unix socket, into one file."""

import os
import socket
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from testkit.certificates import Authority
from testkit.ports import LOOPBACK, free_port
from testkit.processes import Server

START_TIMEOUT_S = 60.0
MESSAGE_BYTES_MAX = 8192
"""rsyslogd's own default."""

TOOLS = "/usr/sbin:/sbin"
"""Where Debian puts rsyslogd; not everybody's PATH has it."""

FIELDS = (
    "syslogfacility-text",
    "syslogseverity-text",
    "hostname",
    "app-name",
    "procid",
    "msgid",
    "structured-data",
    "timestamp:::date-rfc3339",
    "inputname",
)


@dataclass(frozen=True, slots=True)
class Received:
    """A message as rsyslogd parsed it."""

    facility: str
    severity: str
    host_name: str
    app_name: str
    procid: str
    msgid: str
    structured_data: str
    timestamp: str
    input_name: str
    message: str


class Rsyslog:
    """rsyslogd; as a context manager it runs."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.authority = Authority()
        self.ports = {name: free_port() for name in ("tcp", "tls", "udp")}
        self.socket_path = directory / "log.sock"
        self._server: Server | None = None

    def receiver(self, transport: str) -> str:
        """Return the receiver of this transport, as kustos' settings name it."""
        if transport == "unix":
            return f"unix://{self.socket_path}"
        return f"{transport}://{LOOPBACK}:{self.ports[transport]}"

    def start(self) -> Self:
        """Start, and return when it listens."""
        self.directory.mkdir(parents=True, exist_ok=True)
        config = self.directory / "rsyslog.conf"
        config.write_text(self._config())
        command = ["env", f"PATH={os.environ.get('PATH', '')}:{TOOLS}", "rsyslogd", "-n", "-C"]
        command += ["-f", str(config), "-i", str(self.directory / "rsyslogd.pid")]
        self._server = Server("rsyslogd", command, self.directory / "rsyslogd.log")
        self._server.wait_ready(self._listens, timeout_s=START_TIMEOUT_S)
        return self

    def stop(self) -> None:
        """Stop it, and close what is connected to it."""
        server, self._server = self._server, None
        if server is not None:
            server.terminate(timeout_s=START_TIMEOUT_S)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def received(self) -> list[Received]:
        """Return the messages so far, in order of arrival."""
        path = self.directory / "received"
        whole = path.read_text().rpartition("\n")[0] if path.exists() else ""
        return [Received(*line.split("\t", len(FIELDS))) for line in whole.split("\n") if line]

    def _listens(self) -> bool:
        for name in ("tcp", "tls"):
            try:
                socket.create_connection((LOOPBACK, self.ports[name]), timeout=5).close()
            except OSError:
                return False
        return self.socket_path.exists()

    def _config(self) -> str:
        holder = self.authority.issue("rsyslogd")
        ca = self.authority.write(self.directory / "authority.pem")
        certificate, key = self.directory / "certificate.pem", self.directory / "key.pem"
        certificate.write_text(holder.chain_pem)
        key.write_text(holder.key_pem)
        template = "\\t".join(f"%{name}%" for name in (*FIELDS, "msg")) + "\\n"
        return f"""
global(workDirectory="{self.directory}" defaultNetstreamDriver="ossl"
    defaultNetstreamDriverCAFile="{ca}" defaultNetstreamDriverCertFile="{certificate}"
    defaultNetstreamDriverKeyFile="{key}" parser.escapeControlCharactersOnReceive="on")
module(load="imtcp") module(load="imudp") module(load="imuxsock" sysSock.use="off")
template(name="parsed" type="string" string="{template}")
input(type="imtcp" address="{LOOPBACK}" port="{self.ports["tcp"]}" name="tcp" streamDriver.name="ptcp"
    streamDriver.mode="0")
input(type="imtcp" address="{LOOPBACK}" port="{self.ports["tls"]}" name="tls" streamDriver.name="ossl"
    streamDriver.mode="1" streamDriver.authMode="anon")
input(type="imudp" address="{LOOPBACK}" port="{self.ports["udp"]}" name="udp")
input(type="imuxsock" socket="{self.socket_path}" useSpecialParser="off" parseHostname="on"
    useSysTimeStamp="off" ignoreTimestamp="off" rateLimit.interval="0")
*.* action(type="omfile" file="{self.directory}/received" template="parsed")
"""
