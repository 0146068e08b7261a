"""attacker.py KIND PORT AUTHORITY COUNT: attacks with many clients, each on its own TLS connection.

    heads        each sends 16,000 bytes of a head without its end
    bodies       each sends all but one of 60,000 bytes of a registration
    fragments    each opens a socket at /sink, whose server reads nothing, and sends a message in one-byte fragments
                 until the send buffer is full
    windows      each opens a socket at /flood with the smallest window of the system, and reads a byte now and then
    hellos       each sends the longest ClientHello that the gate accepts, without its last byte
    certificates each answers a TLS 1.2 handshake with the longest message of client certificates that the gate
                 accepts, without its last byte
    silence      each completes the TLS handshake and sends nothing
    sink         no client: a server that accepts sockets and reads nothing from them; writes {"port": N}

Writes {"ready": number of open connections} when all clients are ready, and keeps them until standard input ends.
"""
import asyncio
import base64
import hashlib
import json
import socket
import ssl
import sys
import threading
import time

HANDSHAKE = ("GET {} HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
             "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")


def tell(**event):
    print(json.dumps(event), flush=True)


def dial(port, window=None):
    plain = socket.socket()
    if window:
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, window)
    plain.settimeout(20)
    plain.connect(("127.0.0.1", port))
    return plain


def connect(port, authority, window=None):
    plain = dial(port, window)
    return ssl.create_default_context(cafile=authority).wrap_socket(plain, server_hostname="localhost")


def upgrade(client, path):
    client.sendall(HANDSHAKE.format(path).encode())
    head = b""
    while b"\r\n\r\n" not in head:
        head += client.recv(1)
    assert head.startswith(b"HTTP/1.1 101"), head


def heads(client):
    client.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Long: " + b"a" * 15950)


def bodies(client):
    client.sendall(b"POST /attest/register HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                   b"Content-Length: 60000\r\n\r\n" + b"a" * 59999)


def fragments(client):
    upgrade(client, "/sink")
    client.sendall(bytes([0x01, 0x81, 0, 0, 0, 0, 97]))
    block = bytes([0x00, 0x81, 0, 0, 0, 0, 97]) * 2000
    client.settimeout(1)
    try:
        for _ in range(5000):
            client.sendall(block)
    except TimeoutError:
        pass


def windows(client):
    upgrade(client, "/flood")

    def trickle():
        try:
            while client.recv(1):
                time.sleep(0.1)
        except OSError:
            pass

    threading.Thread(target=trickle, daemon=True).start()


def unfinished(kind, version):
    """Returns a handshake message of 16 KiB without its last byte, in two records.

    The gate allocates memory for the message when it reads the header, and another buffer for the second record.
    """
    return bytes([22, 3, version, 0, 4, kind, 0, 0x40, 0]) + bytes([22, 3, version, 0x40, 0]) + b"a" * 16383


def hellos(client):
    client.sendall(unfinished(1, version=1))


def certificates(client):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # TLS 1.3 encrypts a client's certificates.
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    greeting = ssl.MemoryBIO()
    try:
        context.wrap_bio(ssl.MemoryBIO(), greeting, server_hostname="localhost").do_handshake()
    except ssl.SSLWantReadError:
        client.sendall(greeting.read())
    # ServerHelloDone is the last message of the gate's flight.
    flight = b""
    while not flight.endswith(bytes([14, 0, 0, 0])):
        flight += client.recv(4096)
    client.sendall(unfinished(11, version=3))


def silence(client):
    pass


async def sink():
    held = []

    async def serve(reader, writer):
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        key = next(line.split(":")[1].strip() for line in head.split("\r\n") if line.lower().startswith("sec-websocket-key"))
        digest = hashlib.sha1((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest()
        writer.write(("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                      f"Sec-WebSocket-Accept: {base64.b64encode(digest).decode()}\r\n\r\n").encode())
        writer.transport.pause_reading()
        held.append(writer)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    tell(port=server.sockets[0].getsockname()[1])
    await server.serve_forever()


def attack(kind, port, authority, count):
    act = globals()[kind]
    clients = []

    def begin(_):
        client = dial(port) if kind in ("hellos", "certificates") else connect(port, authority, 2304 if kind == "windows" else None)
        act(client)
        clients.append(client)

    import concurrent.futures
    with concurrent.futures.ThreadPoolExecutor(8 if kind != "fragments" else count) as pool:
        list(pool.map(begin, range(count)))
    tell(ready=len(clients))
    sys.stdin.read()


if sys.argv[1] == "sink":
    asyncio.run(sink())
else:
    attack(sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4]))
