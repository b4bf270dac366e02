"""Random client addresses and random hosts of ACLs: ranges well formed, oddly written and malformed.

Clients are written as Java's `getHostAddress()` writes them. Zones are never names: of those Kafka asks
the machine whether it has such an interface.
"""

import re
from ipaddress import IPv6Address
from random import Random

V4_BITS, V6_BITS = 32, 128
ODD = "0123456789abcdefABCDEF:.//%[]+- *gx_\u0663\uff11\u0e52"
"""What a malformed host gets: also digits of other scripts, which Java reads as numbers here and there."""
ZONES = ["%1", "%0", "%", "%2147483647", "%2147483648", "%1:1", "%0001", "%1%1", "%1]"]
ZONE_NAME = re.compile(r"%(?!\d+[\]/])[A-Za-z0-9_.@-]{1,15}\]?(/|$)", re.ASCII)
BASES_V4 = [0x0A000000, 0xC0A80100, 0x7F000001, 0, 0xFFFFFFFF]
BASES_V6 = [0x20010DB8 << 96, 1, 0xFE80 << 112, 0, 0x64FF9B << 96, (1 << 128) - 1]
MAPPED = range(0xFFFF << 32, 0x10000 << 32)
"""IPv4-mapped addresses, which Java turns into IPv4 ones."""

Address = tuple[int, int]
"""How many bits, and the number."""


class HostTexts:
    """Addresses near each other, so that ranges hold some of them."""

    def __init__(self, rng: Random) -> None:
        self._random = rng
        self._bases = [self._base() for _ in range(rng.randint(2, 4))]

    def _base(self) -> Address:
        rng = self._random
        if rng.random() < 0.6:
            return V4_BITS, rng.choice(BASES_V4) ^ rng.getrandbits(rng.choice([4, 8, 16, 32]))
        return V6_BITS, rng.choice(BASES_V6) ^ rng.getrandbits(rng.choice([4, 16, 64, 128]))

    def _address(self) -> Address:
        """Return an address that shares its first bits with a base."""
        rng = self._random
        bits, number = rng.choice(self._bases)
        if rng.random() < 0.6:
            number ^= rng.getrandbits(rng.choice([4, 8, 16, rng.randint(1, bits)]))
        return bits, number

    def client(self) -> str:
        """Return a client's address."""
        bits, number = self._address()
        if bits == V6_BITS and number in MAPPED:
            bits, number = V4_BITS, number & 0xFFFFFFFF
        text = v4_text(number) if bits == V4_BITS else ":".join(f"{part:x}" for part in v6_parts(number))
        is_scoped = bits == V6_BITS and number >> 118 == 0xFE80 >> 6
        return f"{text}%1" if is_scoped and self._random.random() < 0.3 else text

    def pattern(self) -> str:
        """Return a range, mostly one that Kafka can read."""
        while ZONE_NAME.search(pattern := self._pattern()):
            continue
        return pattern

    def _pattern(self) -> str:
        rng = self._random
        bits, number = self._address()
        text = self._v4(number) if bits == V4_BITS else self._v6(number)
        prefix = str(rng.choice([rng.randint(0, bits), rng.randint(0, bits), bits, bits + 1, 0, 8, 24]))
        if rng.random() < 0.08:
            prefix = rng.choice(["+", "-", "0", "00000000", " ", "0x", "\u0660"]) + prefix
        pattern = f"{text}/{prefix}"
        return self._broken(pattern) if rng.random() < 0.12 else pattern

    def _v4(self, number: int) -> str:
        parts = v4_text(number).split(".")
        if self._random.random() < 0.08:
            parts[self._random.randrange(4)] = self._random.choice(["010", "00", "256", "1000", "", "0"])
        return ".".join(parts)

    def _v6(self, number: int) -> str:
        rng = self._random
        address = IPv6Address(number)
        forms = [str(address), address.exploded, ":".join(f"{part:x}" for part in v6_parts(number))]
        forms += [str(address).upper(), f"{address}%1"]
        low = v4_text(number & 0xFFFFFFFF)
        forms.append(":".join([*(f"{part:x}" for part in v6_parts(number)[:6]), low]))
        if rng.random() < 0.15:
            forms += [f"[{address}]", f"::{low}", f"::ffff:{low}", f"{address}{rng.choice(ZONES)}"]
            forms += [f"::0{low}", f"0{address}", f"::{number & 0xFFFFF:x}"]
        return rng.choice(forms)

    def _broken(self, text: str) -> str:
        rng = self._random
        for _ in range(rng.choice([1, 1, 2])):
            position = rng.randrange(len(text) + 1)
            cut = rng.choice([0, 1, 1])
            odd = rng.choice(["", rng.choice(ODD), rng.choice(ODD)])
            text = text[:position] + odd + text[position + cut :]
        return text


def v4_text(number: int) -> str:
    return ".".join(str(number >> shift & 255) for shift in (24, 16, 8, 0))


def v6_parts(number: int) -> list[int]:
    return [number >> shift & 0xFFFF for shift in range(112, -1, -16)]
