"""An authorizer whose start a test controls; it is loaded by its path."""

import asyncio
from collections.abc import Awaitable, Mapping
from typing import ClassVar

from kustos.authorizer import AuthorizerServerInfo, Endpoint
from testkit.acls.specified_authorizer import SpecAuthorizer


class Held(SpecAuthorizer):
    """Starts on early start listeners at once, on others when `begin` says so."""

    latest: ClassVar["Held | None"] = None

    def start(self, server_info: AuthorizerServerInfo) -> Mapping[Endpoint, Awaitable[None]]:
        Held.latest = self
        loop = asyncio.get_running_loop()
        self.info = server_info
        self.begin: asyncio.Future[None] = loop.create_future()
        at_once: asyncio.Future[None] = loop.create_future()
        at_once.set_result(None)
        early = server_info.early_start_listeners
        return {
            each: at_once if each.listener_name in early else self.begin for each in server_info.endpoints
        }


class Failing(SpecAuthorizer):
    """Cannot start."""

    def start(self, server_info: AuthorizerServerInfo) -> Mapping[Endpoint, Awaitable[None]]:
        raise OSError("the store is down")


class FailingLater(SpecAuthorizer):
    """Begins to start, and then cannot."""

    def start(self, server_info: AuthorizerServerInfo) -> Mapping[Endpoint, Awaitable[None]]:
        failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_soon(failed.set_exception, OSError("the store is down"))
        return dict.fromkeys(server_info.endpoints, failed)


class Unconfigurable(SpecAuthorizer):
    """Takes no settings."""

    def configure(self, configs: Mapping[str, str]) -> None:
        raise ValueError("`store.url` is not set")
