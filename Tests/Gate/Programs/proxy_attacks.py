"""Requests that try to bring an identity field past a proxy that asks the gate, and what must become of each.

Usage: proxy_attacks.py PORT CA_FILE. Writes {"cases": [[name, fate], …]} first. Then reads lines of JSON
{"case": index, "proof": [[name, value], …]}, sends that case with that proof to the proxy, and writes
{"status": S, "tunnel": "open" or "none"}; a status of 0 is a connection that ended without an answer. Each case has
the target /case/INDEX. Every value of a spoofed field is "spoofed", and nothing else is.

The fates: "pass" is admitted and reaches the backend with the gate's identity. "most" is the same with every proxy but
HAProxy, which may refuse it. "may" is refused, or passes like that. "tunnel" also becomes a WebSocket. "stay" does not
reach the backend.
"""
import json
import socket
import ssl
import sys

NAMES = ["X-Attest-Assertion", "X-Attest-Key-Id", "X-Attest-App", "X-Attest-Method", "X-Attest-Error"]
MARK = b"spoofed"
SETTINGS = "AAMAAABkAAQAAP__"
HANDSHAKE = [("Sec-WebSocket-Version", "13"), ("Sec-WebSocket-Key", "AAAAAAAAAAAAAAAAAAAAAA==")]


def spoofed(change, value=MARK):
    return [(change(name), value) for name in NAMES]


# Each way to write the names that a server could read as the gate's.
FORMS = {
    "as they are": spoofed(str),
    "in lowercase": spoofed(str.lower),
    "in uppercase": spoofed(str.upper),
    "with underscores": spoofed(lambda name: name.replace("-", "_")),
    "with one underscore": spoofed(lambda name: name.replace("-", "_", 1)),
    "with dots": spoofed(lambda name: name.replace("-", ".")),
    "twice": spoofed(str) * 2,
    "with bytes above 0x7F in the value": spoofed(str, MARK + b"\xfc\xff"),
    "with a byte above 0x7F in the name": spoofed(lambda name: name.encode() + b"\xa0"),
}


class Case:
    """One request, over HTTP/1.1 or HTTP/2."""

    def __init__(self, name, fate="pass", fields=(), connection=None, trailers=None, announced=True, h2=False,
                 method="GET", target=None, proved=True, protocol=None, first=False):
        self.name, self.fate, self.fields, self.trailers = name, fate, list(fields), trailers
        self.announced, self.h2, self.proved, self.protocol = announced, h2, proved, protocol
        self.method = "POST" if trailers is not None else method
        self.target = target
        # Whether the fields stand before the proof.
        self.first = first
        if connection is not None:
            self.fields.append(("Connection", connection))
        elif not h2:
            self.fields.append(("Connection", "close"))

    def all_fields(self, proof):
        proof = proof if self.proved else []
        return self.fields + proof if self.first else proof + self.fields


def upgrade(name, *protocols, fate="may", connection="Upgrade, HTTP2-Settings", settings=True):
    fields = [("Upgrade", protocol) for protocol in protocols]
    if settings:
        fields.append(("HTTP2-Settings", SETTINGS))
    return Case(name, fate, fields + HANDSHAKE, connection)


def cases():
    for form, fields in FORMS.items():
        odd = any(word in form for word in ("0x7F", "dots", "underscore"))
        yield Case(f"names {form}", "may" if odd else "pass", fields)
        yield Case(f"names {form}, before the proof", "may" if odd else "pass", fields, first=True)
        yield Case(f"HTTP/2, names {form}", "may", [(lower(name), value) for name, value in fields], h2=True)
        yield Case(f"trailers, names {form}", "may", trailers=fields)
        yield Case(f"trailers that are not announced, names {form}", "may", trailers=fields, announced=False)
        yield Case(f"HTTP/2, trailers, names {form}", "may", trailers=[(lower(n), v) for n, v in fields], h2=True)
    every = ", ".join(NAMES)
    for name in NAMES[:4]:
        yield Case(f"Connection with {name}", connection=f"close, {name}")
    yield Case("Connection with every name", connection=f"close, {every}")
    yield Case("Connection with every name in lowercase", connection=f"{every.lower()}, close")
    yield Case("Connection with every name and no option", connection=every)
    yield Case("Connection with every name, which are sent", "pass", FORMS["as they are"], f"close, {every}")
    yield Case("two Connection fields", "pass", [("Connection", every)], "close")
    yield Case("Connection in uppercase", "pass", [("CONNECTION", every)], "close")
    yield Case("Proxy-Connection and Keep-Alive with every name", "pass",
               [("Proxy-Connection", every), ("Keep-Alive", every)])
    yield Case("TE and Trailer with every name", "pass", [("TE", f"trailers, {every}"), ("Trailer", every)])
    yield Case("Connection with the proof", "may", connection="close, X-App-Assert-KeyId, X-App-Assert-Nonce")
    yield Case("Connection with Host and Content-Length", "may", connection="close, Host, Content-Length")
    yield Case("HTTP/2, Connection with every name", "may", [("connection", every)], h2=True)
    yield Case("a WebSocket", "tunnel", [("Upgrade", "websocket")] + HANDSHAKE, "Upgrade")
    yield Case("a WebSocket in capitals", "tunnel", [("Upgrade", "WebSocket")] + HANDSHAKE, "keep-alive, UPGRADE")
    yield Case("a WebSocket with spoofed fields", "tunnel",
               [("Upgrade", "websocket")] + HANDSHAKE + FORMS["as they are"], "Upgrade")
    yield Case("a WebSocket, Connection with every name", "tunnel",
               [("Upgrade", "websocket")] + HANDSHAKE, f"Upgrade, {every}")
    yield upgrade("h2c", "h2c")
    yield upgrade("h2c in capitals", "H2C")
    yield upgrade("h2c without its settings", "h2c", connection="Upgrade", settings=False)
    yield upgrade("h2c that Connection does not name", "h2c", connection="close")
    yield upgrade("h2c, then websocket", "h2c, websocket")
    yield upgrade("websocket, then h2c", "websocket, h2c")
    yield upgrade("two Upgrade fields, h2c first", "h2c", "websocket")
    yield upgrade("two Upgrade fields, websocket first", "websocket", "h2c")
    yield upgrade("h2c with a version", "h2c/1.0")
    yield upgrade("h2", "h2")
    yield upgrade("TLS", "TLS/1.3")
    yield upgrade("a protocol of the backend's own", "attest")
    yield Case("h2c by POST with a body", "may",
               [("Upgrade", "h2c"), ("HTTP2-Settings", SETTINGS)], "Upgrade, HTTP2-Settings", trailers=[])
    yield Case("HTTP/2, h2c", "may", [("upgrade", "h2c"), ("http2-settings", SETTINGS)], h2=True)
    yield Case("HTTP/2, h2c with Connection", "may",
               [("connection", "Upgrade, HTTP2-Settings"), ("upgrade", "h2c"), ("http2-settings", SETTINGS)], h2=True)
    yield Case("HTTP/2, extended CONNECT to h2c", "may", h2=True, method="CONNECT", protocol="h2c")
    yield Case("HTTP/2, extended CONNECT to another protocol", "may", h2=True, method="CONNECT", protocol="attest")
    yield Case("HTTP/2, plain", "most", h2=True)
    yield Case("HTTP/1.1, plain", "pass")
    yield Case("the absolute form", "may", FORMS["as they are"], target="https://localhost/case/{index}")
    yield Case("the absolute form of another host", "may", FORMS["as they are"], target="http://other/case/{index}")
    yield Case("no proof", "stay", FORMS["as they are"], proved=False)
    yield Case("HTTP/2, no proof", "stay", spoofed(str.lower), h2=True, proved=False)
    yield Case("the path of challenges", "stay", FORMS["as they are"], target="/attest/challenge", proved=False)
    yield Case("below the path of challenges", "stay", FORMS["as they are"], proved=False,
               target="/attest/challenge/../case/{index}")
    yield Case("an escaped path of challenges", "stay", FORMS["as they are"], proved=False,
               target="/attest%2Fchallenge/case/{index}")
    yield Case("the proxy's own location", "stay", FORMS["as they are"], proved=False, target="/_attest")
    yield Case("h2c at the path of challenges", "stay", [("Upgrade", "h2c"), ("HTTP2-Settings", SETTINGS)],
               "Upgrade, HTTP2-Settings", target="/attest/challenge", proved=False)
    yield Case("a Latin-1 value", "pass", [("X-Name", b"J\xfcrgen")])
    yield Case("a query that the gate would refuse", target='/case/{index}?a="b"|c')
    yield Case("cookies of 20 KB", "most", [("Cookie", f"part{part}={'x' * 6900}") for part in range(3)])
    yield Case("110 fields", "most", [(f"X-Field-{number}", "x") for number in range(110)])
    yield Case("an Accept of JSON", fields=[("Accept", "application/json")])


def octets(text):
    return text if isinstance(text, bytes) else text.encode("latin-1")


def lower(name):
    return name.lower()


def head(lines):
    return b"".join(octets(name) + b": " + octets(value) + b"\r\n" for name, value in lines)


def frame(kind, flags, stream, payload):
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def length(number):
    if number < 127:
        return bytes([number])
    coded, number = b"\x7f", number - 127
    while number >= 128:
        coded, number = coded + bytes([number % 128 + 128]), number // 128
    return coded + bytes([number])


def block(fields):
    """HPACK: each field as a literal that is not indexed."""
    return b"".join(b"\x00" + length(len(n)) + n + length(len(v)) + v for n, v in
                    ((octets(name), octets(value)) for name, value in fields))


PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, b"")
# What an attacker sends through a tunnel: a request with an identity of its own.
SMUGGLED = PREFACE + frame(1, 5, 1, block([
    (":method", "GET"), (":scheme", "http"), (":authority", "localhost"), (":path", "/smuggled"),
    ("x-attest-key-id", MARK)]))


def connect(port, authority, protocol):
    context = ssl.create_default_context(cafile=authority)
    context.set_alpn_protocols([protocol])
    connection = context.wrap_socket(socket.create_connection(("127.0.0.1", port), 20), server_hostname="localhost")
    connection.settimeout(20)
    return connection


def receive(connection):
    try:
        return connection.recv(65536)
    except ConnectionError:
        return b""


def send_http1(connection, case, target, proof):
    fields = [("Host", "localhost")] + case.all_fields(proof)
    body = b""
    if case.trailers is not None:
        fields.append(("Transfer-Encoding", "chunked"))
        if case.trailers and case.announced:
            fields.append(("Trailer", b", ".join(octets(name) for name, _ in case.trailers)))
        body = b"4\r\nbody\r\n0\r\n" + head(case.trailers) + b"\r\n"
    connection.sendall(f"{case.method} {target} HTTP/1.1\r\n".encode() + head(fields) + b"\r\n" + body)
    answer = b""
    while b"\r\n\r\n" not in answer:
        more = receive(connection)
        if not more:
            return 0, "none"
        answer += more
    status = int(answer.split(b" ")[1])
    if status != 101:
        return status, "none"
    connection.sendall(SMUGGLED)
    # The backend answers what it has recorded.
    return status, "open" if receive(connection) else "none"


def status_of(fields):
    """The status at the front of an HPACK block."""
    while fields and fields[0] & 0xE0 == 0x20:
        fields = fields[1:]
    known = {0x88: 200, 0x89: 204, 0x8A: 206, 0x8B: 304, 0x8C: 400, 0x8D: 404, 0x8E: 500}
    if not fields or fields[0] in known:
        return known[fields[0]] if fields else 0
    size, value = fields[1] & 0x7F, fields[2:]
    if not fields[1] & 0x80:
        return int(value[:size])
    bits = "".join(f"{byte:08b}" for byte in value[:size])
    digits = ""
    while len(digits) < 3:
        short = bits[:5] in ("00000", "00001", "00010")
        digits += str(int(bits[:5], 2) if short else int(bits[:6], 2) - 22)
        bits = bits[5 if short else 6:]
    return int(digits)


def send_http2(connection, case, target, proof):
    fields = [(":method", case.method), (":scheme", "https"), (":authority", "localhost"), (":path", target)]
    if case.protocol:
        fields.append((":protocol", case.protocol))
    fields += [(octets(name).lower(), value) for name, value in case.all_fields(proof)]
    ends = case.trailers is None and not case.protocol
    request = PREFACE + frame(1, 5 if ends else 4, 1, block(fields))
    if case.trailers is not None:
        request += frame(0, 0, 1, b"body") + frame(1, 5, 1, block(case.trailers))
    connection.sendall(request)
    received, status, sent = b"", 0, False
    while True:
        while len(received) < 9 or len(received) < 9 + int.from_bytes(received[:3], "big"):
            more = receive(connection)
            if not more:
                return status, "none"
            received += more
        size, kind, flags = int.from_bytes(received[:3], "big"), received[3], received[4]
        payload, received = received[9:9 + size], received[9 + size:]
        if kind == 4 and not flags & 1:
            connection.sendall(frame(4, 1, 0, b""))
        elif kind == 1 and not status:
            status = status_of(payload)
            if case.protocol and status == 200 and not flags & 1:
                connection.sendall(frame(0, 0, 1, SMUGGLED))
                sent = True
        elif kind == 0 and sent:
            return status, "open"
        if kind in (3, 7) or kind in (0, 1) and flags & 1:
            return status, "none"


def main(port, authority):
    table = list(cases())
    print(json.dumps({"cases": [[case.name, case.fate] for case in table]}), flush=True)
    for line in sys.stdin:
        order = json.loads(line)
        case = table[order["case"]]
        target = (case.target or "/case/{index}").replace("{index}", str(order["case"]))
        proof = [tuple(field) for field in order["proof"]]
        with connect(int(port), authority, "h2" if case.h2 else "http/1.1") as connection:
            status, tunnel = (send_http2 if case.h2 else send_http1)(connection, case, target, proof)
        print(json.dumps({"status": status, "tunnel": tunnel}), flush=True)


main(*sys.argv[1:])
