"""What a client says: turns steps into bytes, with proofs and tokens that depend on what it heard.

Bytes are written as a text (UTF-8), as `{hex: ff00}`, as `{repeat: a, times: 1000}`, as one of the tokens
below, or as a list of these. In a text `${...}` is one of `VARIABLES`.
"""

import base64
import json
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from kustos.auth import ScramHash
from kustos.wire import ApiKey, request_codec, request_frame
from testkit import bearer_tokens
from testkit.conversations.answers import Asked, Reading
from testkit.conversations.documents import DocumentError, Step
from testkit.conversations.tickets import Ticket

NONCE: Final = "rOprNGfwEbeRWgbNEkqO"
"""The client's nonce; nothing here is secret."""

VARIABLES: Final = ("mine", "nonce", "proof", "token", "hmac", "expired-token", "expired-hmac")
"""The client's nonce and the server's; the proof of the step's `password`; delegation tokens of the side."""

CORRELATION_ID: Final = 5
_VARIABLE: Final = re.compile(r"\$\{([a-z-]+)\}")


@dataclass(frozen=True, slots=True)
class Saying:
    """Bytes for the socket, and what each awaited answer answers."""

    data: bytes
    awaits: tuple[Asked, ...]
    ends: bool = False
    waits: bool = False


@dataclass(slots=True)
class Speaker:
    """The client of one connection: `say` a step, then `listen` to each token that came."""

    secrets: Mapping[str, str]
    now_s: int = field(default_factory=lambda: int(time.time()))
    mechanism: str = ""
    _in_requests: bool = True
    _first: bytes = b""
    _server_first: bytes = b""
    _expected: bytes | None = None
    _ticket: Ticket | None = None

    def say(self, step: Step) -> Saying:
        """Return the bytes of a step; raise `DocumentError` for an unknown kind."""
        saying = SAYINGS.get(step.kind)
        if saying is None:
            raise DocumentError(f"there is no step `{step.kind}`")
        return saying(self, step)

    def listen(self, token: bytes) -> None:
        """Take in a token of the server, before the next step."""
        if self.mechanism.startswith("SCRAM") and token.startswith(b"r="):
            self._server_first = token
        elif self._ticket is not None and token:
            self._ticket.take(token)

    @property
    def reading(self) -> Reading:
        """What an answer is read with."""
        return Reading(
            self.mechanism,
            NONCE.encode(),
            b"tokenauth=" in self._first,
            lambda: None if self._expected is None else base64.b64encode(self._expected),
            lambda token: b"?" if self._ticket is None else self._ticket.described(token),
        )

    def _request(self, step: Step, api_key: int, default_version: int, **fields: Any) -> Saying:
        version = step.options.get("version", default_version)
        correlation_id = step.options.get("correlation_id", CORRELATION_ID)
        codec = request_codec(api_key, version)
        frame = request_frame(
            codec, api_key, correlation_id, step.options.get("client", "c"), codec.encode(codec.new(**fields))
        )
        return Saying(frame, (Asked(api_key, version),))

    def _versions(self, step: Step) -> Saying:
        version = int(step.argument)
        named = {
            "client_software_name": step.options.get("software", "kustos-test"),
            "client_software_version": step.options.get("software_version", "1.0"),
        }
        known = Step(step.kind, None, {**step.options, "version": version})
        return self._request(known, int(ApiKey.API_VERSIONS), version, **(named if version >= 3 else {}))

    def _handshake(self, step: Step) -> Saying:
        self.mechanism = step.argument
        self._in_requests = step.options.get("version", 1) > 0
        self._ticket = None
        return self._request(step, int(ApiKey.SASL_HANDSHAKE), 1, mechanism=step.argument)

    def _token(self, step: Step) -> Saying:
        token = self._bytes(step.argument, step)
        return self._request(step, int(ApiKey.SASL_AUTHENTICATE), 2, auth_bytes=token)

    def _bare(self, step: Step) -> Saying:
        token = self._bytes(step.argument, step)
        return Saying(len(token).to_bytes(4) + token, (Asked(None),) * step.options.get("answers", 1))

    def _ask(self, step: Step) -> Saying:
        return self._request(step, int(ApiKey[step.argument]), step.options["version"])

    def _who(self, step: Step) -> Saying:
        del step
        made = Step("who", None, {"version": 3})
        return self._request(
            made,
            int(ApiKey.CREATE_DELEGATION_TOKEN),
            3,
            owner_principal_type=None,
            owner_principal_name=None,
            renewers=[],
            max_lifetime=-1,
        )

    def _frame(self, step: Step) -> Saying:
        data = self._bytes(step.argument, step)
        asked = Asked(int.from_bytes(data[:2], signed=True), int.from_bytes(data[2:4], signed=True))
        return Saying(len(data).to_bytes(4) + data, (asked,) * step.options.get("answers", 1))

    def _raw(self, step: Step) -> Saying:
        api = step.options.get("api")
        asked = Asked(None if api is None else int(ApiKey[api]), step.options.get("version", 0))
        return Saying(self._bytes(step.argument, step), (asked,) * step.options.get("answers", 1))

    def _together(self, step: Step) -> Saying:
        said = [self.say(Step.of(entry)) for entry in step.argument]
        return Saying(
            b"".join(each.data for each in said), tuple(one for each in said for one in each.awaits)
        )

    def _end(self, step: Step) -> Saying:
        del step
        return Saying(b"", (Asked(None),), ends=True)

    def _expire(self, step: Step) -> Saying:
        del step
        return Saying(b"", (), waits=True)

    def _bytes(self, given: Any, step: Step) -> bytes:
        if isinstance(given, str):
            return self._text(given, step)
        if isinstance(given, list):
            return b"".join(self._bytes(each, step) for each in given)
        kind = next(iter(given))
        match kind:
            case "hex":
                return bytes.fromhex(given["hex"])
            case "repeat":
                return self._bytes(given["repeat"], step) * int(given["times"])
            case "jwt":
                return self._jwt(given).encode()
            case "ticket":
                self._ticket = self._ticket or Ticket(**given["ticket"])
                return self._ticket.next()
            case "wrapped" if self._ticket is not None:
                return self._ticket.wrapped(bytes.fromhex(given["wrapped"]), given.get("damaged", False))
        raise DocumentError(f"`{kind}` is not a kind of bytes here")

    def _text(self, text: str, step: Step) -> bytes:
        values = {"mine": NONCE, "nonce": self._nonce(), **self.secrets}
        self._remember(text, values)
        needs_proof = "${proof}" in text
        filled = _VARIABLE.sub(lambda match: values.get(match[1], match[0]), text)
        if needs_proof:
            filled = filled.replace("${proof}", self._proof(filled.partition(",p=")[0], step))
        return filled.encode()

    def _remember(self, text: str, values: Mapping[str, str]) -> None:
        if self.mechanism.startswith("SCRAM") and ",n=" in text:
            self._first = _VARIABLE.sub(lambda match: values.get(match[1], ""), text).encode()

    def _nonce(self) -> str:
        found = re.match(rb"r=([^,]+),", self._server_first)
        return "" if found is None else found[1].decode()

    def _proof(self, without_proof: str, step: Step) -> str:
        chosen = next(each for each in ScramHash if each.mechanism_name == self.mechanism)
        found = re.fullmatch(rb"r=[^,]+,s=([^,]+),i=([0-9]+)", self._server_first)
        if found is None:
            # nothing to prove anything with: as a client that did not listen
            return base64.b64encode(bytes(chosen.size)).decode()
        password = _VARIABLE.sub(lambda match: self.secrets[match[1]], step.options["password"])
        salted = chosen.salted_password(password.encode(), base64.b64decode(found[1]), int(found[2]))
        bare = self._first.split(b",", 2)[2]
        signed = b",".join((bare, self._server_first, step.options.get("signs", without_proof).encode()))
        client_key = chosen.hmac(salted, b"Client Key")
        signature = chosen.hmac(chosen.digest(client_key), signed)
        self._expected = chosen.hmac(chosen.hmac(salted, b"Server Key"), signed)
        return base64.b64encode(bytes(a ^ b for a, b in zip(client_key, signature, strict=True))).decode()

    def _jwt(self, given: Mapping[str, Any]) -> str:
        payload: Any = given["jwt"]
        if not isinstance(payload, str):
            moved = {
                name: self.now_s + int(value[3:])
                if isinstance(value, str) and value.startswith("now")
                else value
                for name, value in payload.items()
            }
            payload = bearer_tokens.claims(self.now_s, **moved)
        else:
            valid = json.dumps(bearer_tokens.claims(self.now_s))
            payload = payload.replace("${claims}", valid[1:-1])
        name, header = given.get("key", "rsa-1"), given.get("header")
        match given.get("signed", "properly"):
            case "not":
                return bearer_tokens.without_signature(payload, header)
            case "by its public key":
                public = json.dumps(bearer_tokens.public(name)).encode()
                return bearer_tokens.with_hmac(payload, public, name)
            case "and changed":
                return bearer_tokens.compact(payload, name)[:-8] + "AAAAAAAA"
        return bearer_tokens.compact(payload, name, given.get("algorithm", "RS256"), header)


SAYINGS: Final[Mapping[str, Callable[[Speaker, Step], Saying]]] = {
    "versions": Speaker._versions,
    "handshake": Speaker._handshake,
    "token": Speaker._token,
    "bare": Speaker._bare,
    "ask": Speaker._ask,
    "who": Speaker._who,
    "frame": Speaker._frame,
    "raw": Speaker._raw,
    "together": Speaker._together,
    "end": Speaker._end,
    "expire": Speaker._expire,
}
"""Steps. `versions: 4` (`software`, `software_version`), `handshake: PLAIN`, `token` (in a SaslAuthenticate),
`bare` (a token after a handshake of version 0), `ask: METADATA`: requests, with `version`, `correlation_id`
and `client`. `who`: a request whose answer names the principal. `frame`: bytes with their length before them;
`raw`: bytes as they are, which end a request of `api` and `version`; these and `bare` with `answers`, 1 by
default. `together`: steps in one write. `end`: no more will be said. `expire`: wait until the session has
expired."""
