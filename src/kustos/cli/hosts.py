"""Addresses as people write them, converted to the form that ACLs compare."""

from ipaddress import IPv6Address, ip_address

from kustos.cli.failures import usage_error


def java_host(text: str) -> str:
    """Return an address as Java's `getHostAddress()` writes it; raise a usage error for any other text."""
    try:
        address = ip_address(text.strip())
    except ValueError:
        raise usage_error(f"`{text}` is no IP address; ACLs know no host names, give an address") from None
    if not isinstance(address, IPv6Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    words = address.packed
    joined = ":".join(f"{words[at] << 8 | words[at + 1]:x}" for at in range(0, 16, 2))
    return f"{joined}%{address.scope_id}" if address.scope_id else joined
