"""Generates CBOR from a seed, and the expected verdicts of a strict decoder according to cbor2."""

import io
import math
import struct
from collections import namedtuple

from cbor2 import decoder
from cbor2.types import CBORSimpleValue, CBORTag, undefined

Verdict = namedtuple("Verdict", "verdict reason")

BYTES, DEPTH, ITEMS = 16384, 8, 1024


class Pairs(list):
    """A map with its pairs in order. A dictionary would merge duplicate keys, and treat 1, 1.0 and True as equal."""


def decode_pairs(self, subtype):
    length = self._decode_length(subtype, allow_indefinite=True)
    pairs = Pairs()
    while length is None or len(pairs) < length:
        key = self._decode()
        if length is None and key is decoder.break_marker:
            break
        pairs.append((key, self._decode()))
    return pairs


# Tags are kept, because the decoder under test does not interpret them.
decoder.semantic_decoders.clear()
decoder.major_decoders[5] = decode_pairs


class Refused(Exception):
    pass


class Strict:
    """Encodes a value in the only accepted form and in the program's notation. Counts items like the program."""

    def __init__(self):
        self.items = 0

    def item(self, value, depth=0):
        """Returns the bytes and the notation of `value`."""
        self.items += 1
        if depth > DEPTH:
            raise Refused("too deep")
        if self.items > ITEMS:
            raise Refused("too many items")
        # In Python, a boolean is also an integer.
        if value is True or value is False:
            return bytes([0xF5 if value else 0xF4]), "true" if value else "false"
        if value is None:
            return b"\xf6", "null"
        if value is undefined:
            return b"\xf7", "undefined"
        if isinstance(value, int):
            major, argument = (0, value) if value >= 0 else (1, -1 - value)
            return head(major, argument), "un"[major] + str(argument)
        if isinstance(value, bytes):
            return head(2, len(value)) + value, "b" + value.hex()
        if isinstance(value, str):
            data = value.encode("utf-8")
            return head(3, len(data)) + data, "t" + data.hex()
        if isinstance(value, float):
            return shortest(value), "f" + ("7ff8" + "0" * 12 if math.isnan(value) else struct.pack(">d", value).hex())
        if isinstance(value, Pairs):
            return self.map(value, depth)
        if isinstance(value, (list, tuple)):
            parts = [self.item(element, depth + 1) for element in value]
            return head(4, len(parts)) + b"".join(p for p, _ in parts), "[" + ",".join(n for _, n in parts) + "]"
        if isinstance(value, CBORTag):
            data, notation = self.item(value.value, depth + 1)
            return head(6, value.tag) + data, f"T{value.tag}({notation})"
        if isinstance(value, CBORSimpleValue):
            raise Refused("a simple value that is not assigned")
        raise Refused(f"no value: {value!r}")

    def map(self, pairs, depth):
        data, notations, keys = [], [], set()
        for key, value in pairs:
            key_data, key_notation = self.item(key, depth + 1)
            if key_data in keys:
                raise Refused("a key twice")
            keys.add(key_data)
            value_data, value_notation = self.item(value, depth + 1)
            data.append(key_data + value_data)
            notations.append(f"{key_notation}:{value_notation}")
        return head(5, len(pairs)) + b"".join(data), "{" + ",".join(notations) + "}"


def head(major, argument):
    if argument < 24:
        return bytes([major << 5 | argument])
    for information, size in ((24, 1), (25, 2), (26, 4), (27, 8)):
        if argument < 1 << 8 * size:
            return bytes([major << 5 | information]) + argument.to_bytes(size, "big")
    raise Refused("a number beyond 64 bits")


def shortest(number):
    if math.isnan(number):
        return b"\xf9\x7e\x00"
    for first, form in ((0xF9, ">e"), (0xFA, ">f")):
        try:
            data = struct.pack(form, number)
        except OverflowError:
            continue
        if struct.unpack(form, data)[0] == number:
            return bytes([first]) + data
    return b"\xfb" + struct.pack(">d", number)


def expected(data):
    """Returns the verdict of a strict decoder: the value that cbor2 reads, if its encoding is canonical."""
    if len(data) > BYTES:
        return Verdict("refused", "too long")
    source = io.BytesIO(data)
    try:
        value = decoder.CBORDecoder(source).decode()
    except (Exception, RecursionError) as error:
        return Verdict("refused", f"cbor2: {error!r}")
    if source.tell() != len(data):
        return Verdict("refused", "bytes after the item")
    try:
        strict, notation = Strict().item(value)
    except Refused as refusal:
        return Verdict("refused", str(refusal))
    if strict != data:
        return Verdict("refused", "not the shortest form, or an indefinite length")
    return Verdict("accepted " + notation, "")


def cases(rng):
    while True:
        data = rng.choice((sound, sound, loose, damaged, noise))(rng)
        yield "cbor " + data.hex(), expected(data)


def number(rng):
    return rng.choice((rng.randrange(24), rng.randrange(1 << 8), rng.randrange(1 << 16), rng.randrange(1 << 32),
                       rng.randrange(1 << 64), (1 << rng.choice((8, 16, 32, 64))) - 1))


def sound(rng, depth=0):
    """Returns one item, usually in the accepted form."""
    kind = rng.randrange(12 if depth < 4 else 8)
    if kind == 0:
        return head(0, number(rng))
    if kind == 1:
        return head(1, number(rng))
    if kind == 2:
        data = rng.randbytes(rng.choice((0, 1, 23, 24, 40, 300)))
        return head(2, len(data)) + data
    if kind == 3:
        data = "".join(rng.choice("aé€😀\u212a\0") for _ in range(rng.randrange(30))).encode()
        return head(3, len(data)) + data
    if kind == 4:
        return shortest(rng.choice((0.0, -0.0, 1.5, 65504.0, 65536.0, 2.0 ** -24, 2.0 ** -25, 1e300, math.inf, -math.inf,
                                    math.nan, rng.random(), float(rng.randrange(1 << 30)), 3.4e38, 1e-45)))
    if kind in (5, 6, 7):
        return bytes([rng.randrange(0xF4, 0xF8)])
    if kind == 8:
        return head(6, number(rng)) + sound(rng, depth + 1)
    parts = [sound(rng, depth + 1) for _ in range(rng.choice((0, 1, 2, 3, 5, 26)))]
    if kind in (9, 10):
        return head(4, len(parts)) + b"".join(parts)
    return head(5, len(parts)) + b"".join(part + sound(rng, depth + 1) for part in parts)


def loose(rng):
    """Returns one item with any form of head, sometimes with an indefinite length or a break."""
    major, argument = rng.randrange(8), rng.choice((0, 1, 2, 23, 24, 255, 256))
    size = rng.choice((0, 1, 2, 4, 8))
    first = major << 5 | (argument % 24 if size == 0 else {1: 24, 2: 25, 4: 26, 8: 27}[size])
    data = bytes([first]) + (argument % (1 << 8 * size)).to_bytes(size, "big")
    if rng.random() < 0.15:
        data = bytes([major << 5 | rng.choice((28, 29, 30, 31, 31, 31))])
    body = b"".join(sound(rng, 3) for _ in range(rng.randrange(4)))
    if major in (2, 3) and rng.random() < 0.7:
        body = rng.randbytes(argument) if rng.random() < 0.3 else b"a" * argument
    return data + body + (b"\xff" if rng.random() < 0.3 else b"")


def damaged(rng):
    """Returns a valid item with one or two bytes changed, removed or added."""
    data = bytearray(sound(rng))
    for _ in range(rng.choice((1, 1, 2))):
        place = rng.randrange(len(data) + 1)
        if rng.random() < 0.3:
            data[place:place] = rng.randbytes(1)
        elif place < len(data):
            if rng.random() < 0.3:
                del data[place]
            else:
                data[place] = rng.randrange(256)
    return bytes(data)


def noise(rng):
    return rng.randbytes(rng.randrange(1, 24))
