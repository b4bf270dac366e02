"""Answers the requests of the admin listener on this node; the guard has authorized them."""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Final

import structlog

from kustos.authorizer import KafkaApiError
from kustos.gateway.admin.configs import ConfigBook
from kustos.gateway.admin.loggers import Loggers, alter_levels
from kustos.gateway.session.client_session import LocalApis
from kustos.gateway.store.writer import MetadataWriter, changed
from kustos.metadata import CONTROLLER_REGISTRATION_LEVEL
from kustos.metadata.control import (
    ApiError,
    ConfigAlteration,
    ConfigResourceType,
    ConfigRules,
    FeatureUpdates,
)
from kustos.protocol import (
    ADMIN_OFFERED,
    MESSAGES,
    UNKNOWN_TOPIC_OR_PARTITION,
    Opened,
    api_versions_response,
    node_messages,
)
from kustos.runtime import Clock
from kustos.wire import ApiKey, ErrorCode, Message

LOG: Final = structlog.get_logger("kustos.gateway")


@dataclass(frozen=True, slots=True)
class AdminNode:
    """The identity of the node in answers of its admin listener."""

    cluster_id: str
    voter: node_messages.LocalVoter


@dataclass(frozen=True, slots=True)
class AdminApis:
    """Serves the APIs of the admin table; `common` serves the APIs of all listeners."""

    node: AdminNode
    writer: MetadataWriter
    common: LocalApis
    configs: ConfigBook
    rules: ConfigRules
    loggers: Loggers
    clock: Clock

    def serve(self, opened: Opened) -> Message | bytes | Coroutine[Any, Any, Message | bytes]:
        """Return the answer, or a coroutine that returns it."""
        exchange = opened.exchange
        response_type, request = exchange.response_codec.root, exchange.request
        api_key = opened.row.api_key
        if api_key == ApiKey.API_VERSIONS:
            return self.api_versions(exchange.version)
        if api_key == ApiKey.DESCRIBE_CLUSTER:
            return self._cluster(response_type, exchange.context.listener_name)
        own: dict[int, Callable[[type[Message], Message], Message | Coroutine[Any, Any, Message]]] = {
            ApiKey.DESCRIBE_QUORUM: self._quorum,
            ApiKey.UPDATE_FEATURES: self._update_features,
            ApiKey.DESCRIBE_CONFIGS: self._configs,
            ApiKey.INCREMENTAL_ALTER_CONFIGS: self._alter_configs,
        }
        return own[api_key](response_type, request) if api_key in own else self.common.serve(opened)

    def api_versions(self, version: int) -> Message:
        """Return the answer to ApiVersions, with the features of this node's own log."""
        image = self.writer.store.image
        features = node_messages.features_message(
            {name: image.features[name] for name in image.features}, image.offset
        )
        return api_versions_response(version, ADMIN_OFFERED, features)

    def _cluster(self, response_type: type[Message], listener: str) -> Message:
        if self.writer.store.image.metadata_version < CONTROLLER_REGISTRATION_LEVEL:
            text = "Direct-to-controller communication is not supported with the current MetadataVersion."
            return response_type(error_code=ErrorCode.unsupported_version.value, error_message=text)
        return node_messages.described_controllers(
            response_type, self.node.cluster_id, self.node.voter, listener
        )

    def _quorum(self, response_type: type[Message], request: Message) -> Message:
        if not node_messages.asks_for_metadata(request):
            code = UNKNOWN_TOPIC_OR_PARTITION
            return node_messages.undescribed_quorum(response_type, request, code, MESSAGES[code])
        image = self.writer.store.image
        state = node_messages.QuorumState(image.epoch, image.offset + 1, self.clock.wall_ms())
        return node_messages.described_quorum(response_type, self.node.voter, state)

    def _configs(self, response_type: type[Message], request: Message) -> Message:
        found = [self.configs.describe(resource) for resource in request.resources]
        return node_messages.described_configs(response_type, request, found)

    async def _update_features(self, response_type: type[Message], request: Message) -> Message:
        updates = FeatureUpdates(
            self.node.voter.node_id,
            node_messages.updates_of(request),
            validate_only=request.get("validate_only", False),
        )
        try:
            (result,) = await changed(self.writer, updates)
        except KafkaApiError as error:
            return node_messages.updated_features(response_type, request, ApiError(error.code, error.message))
        if result.error is None and not updates.validate_only and updates.updates:
            levels = {update.feature: update.level for update in updates.updates}
            LOG.info("features were updated", levels=levels)
        return node_messages.updated_features(response_type, request, result.error)

    async def _alter_configs(self, response_type: type[Message], request: Message) -> Message:
        validate_only = request.validate_only
        answers: list[tuple[int, str, ApiError | None]] = []
        changes = []
        for resource in request.resources:
            if resource.resource_type == ConfigResourceType.BROKER_LOGGER:
                node_id = self.node.voter.node_id
                error = alter_levels(self.loggers, node_id, resource, validate_only=validate_only)
                answers.append((resource.resource_type, resource.resource_name, error))
            else:
                changes.append(node_messages.changes_of(resource))
        if answers and not validate_only:
            await self.writer.followed()
        if changes:
            alteration = ConfigAlteration(tuple(changes), self.rules, validate_only)
            answers += await self._altered(alteration)
        return node_messages.altered_configs(response_type, answers)

    async def _altered(self, alteration: ConfigAlteration) -> list[tuple[int, str, ApiError | None]]:
        """Return the result for each resource; all share one write."""
        try:
            results = await changed(self.writer, alteration)
        except KafkaApiError as error:
            failed = ApiError(error.code, error.message)
            return [(each.resource_type, each.resource_name, failed) for each in alteration.resources]
        return [(each.resource_type, each.resource_name, each.error) for each in results]
