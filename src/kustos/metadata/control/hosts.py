"""Validation of host patterns; address ranges need metadata.version 4.4-IV1 (KIP-1276's gate)."""

import re
from typing import Final

from kio.schema.errors import ErrorCode

from kustos.acl import WILDCARD, AclValueError, HostRange, java_int, java_ipv6
from kustos.metadata.control.results import ApiError
from kustos.metadata.features import CIDR_ACL_LEVEL, metadata_version_name

_IPV4_RANGE: Final = re.compile(r"(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})/(\d{1,2})", re.ASCII)


def host_error(host: str, metadata_version: int) -> ApiError | None:
    """Return why a new ACL cannot have this host, None if it can."""
    if not host:
        return ApiError(ErrorCode.invalid_request, "Host pattern cannot be null or empty")
    if host == WILDCARD or "/" not in host:
        return None
    if metadata_version < CIDR_ACL_LEVEL:
        return ApiError(
            ErrorCode.unsupported_version,
            "CIDR-based ACL host patterns require metadata version "
            f"{metadata_version_name(CIDR_ACL_LEVEL)} or higher.",
        )
    try:
        HostRange.parse(host)
    except AclValueError:
        reason = _ipv6_reason(host) if ":" in host else _ipv4_reason(host)
        return ApiError(ErrorCode.invalid_request, f"Invalid CIDR notation '{host}': {reason}")
    return None


def _ipv4_reason(host: str) -> str:
    match = _IPV4_RANGE.fullmatch(host)
    if match is not None:
        for part, highest in zip(map(int, match.groups()), (255, 255, 255, 255, 32), strict=True):
            if part > highest:
                return f"Value [{part}] not in range [0,{highest}]"
    return f"Could not parse [{host}]"


def _ipv6_reason(host: str) -> str:
    address, _, prefix_text = host.partition("/")
    prefix = java_int(prefix_text)
    if prefix is None:
        return f"Could not parse [{host}] - invalid prefix length"
    if not 0 <= prefix <= 128:
        return f"Could not parse [{host}] - prefix length must be between 0 and 128"
    is_mapped = java_ipv6(address) is not None
    return f"Could not parse [{address}]" + (" - not an IPv6 address" if is_mapped else "")
