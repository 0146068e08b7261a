"""Runs the cases of the Autobahn test suite with kosoku, and provides endpoints for them.

    conformance.py echo                        an echo server: Python's websockets, on a free port of 127.0.0.1
    conformance.py faulty                      an echo server that parses frames and breaks every other rule
    conformance.py drive URL CASES [-CASES]    runs cases against the server at URL; CASES are globs, a dash excludes
    conformance.py serve CASES [-CASES]        runs cases against clients, on a free port of 127.0.0.1
    conformance.py client URL [CA]             a client for `serve`: Python's websockets; CA verifies a wss URL

Servers write {"port": N} first. `drive` and `serve` write a line of JSON for each case when all are done:
{"case": id, "verdict": for the messages, "close": for the closing handshake, "code": received close code}.
"""
import asyncio
import base64
import hashlib
import json
import os
import ssl
import struct
import sys

GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


def tell(**event):
    print(json.dumps(event), flush=True)


def tell_results(results):
    for result in results:
        tell(case=result.case_id, verdict=result.behavior.value, close=result.behavior_close.value,
             code=result.remote_close_code or 0)


def selection(globs):
    return [glob for glob in globs if not glob.startswith("-")], [glob[1:] for glob in globs if glob.startswith("-")]


async def drive(url, *globs):
    import kosoku
    try:
        tell_results(await kosoku.run_fuzzingclient(url, *selection(globs), concurrency=8))
    except kosoku.FailureError as failure:
        tell_results(failure.results)


async def serve(*globs):
    import kosoku
    async with kosoku.run_fuzzingserver(*selection(globs), port=0) as server:
        tell(port=server.port)
        try:
            tell_results(await server.get_result())
        except kosoku.FailureError as failure:
            tell_results(failure.results)


async def client(url, authority=None):
    import websockets
    options = {"max_size": None, "ping_interval": None, "close_timeout": 5}
    if authority:
        options["ssl"] = ssl.create_default_context(cafile=authority)

    async def run(path):
        received = []
        try:
            async with websockets.connect(url.rstrip("/") + path, **options) as socket:
                async for message in socket:
                    received.append(message)
                    if path.startswith("/runCase"):
                        await socket.send(message)
        except websockets.ConnectionClosed:
            pass
        return received

    count = int((await run("/getCaseCount"))[0])
    for number in range(1, count + 1):
        await run(f"/runCase?case={number}&agent=websockets")
    await run("/updateReports?agent=websockets")


async def echo():
    import websockets

    async def answer(socket, path=None):
        try:
            async for message in socket:
                await socket.send(message)
        except websockets.ConnectionClosed:
            pass

    server = await websockets.serve(answer, "127.0.0.1", 0, max_size=None, ping_interval=None)
    tell(port=list(server.sockets)[0].getsockname()[1])
    await asyncio.Future()


async def frame(reader):
    """Returns the first byte and the unmasked payload of any frame."""
    first, length = await reader.readexactly(2)
    is_masked, length = length & 0x80, length & 0x7F
    if length == 126:
        (length,) = struct.unpack(">H", await reader.readexactly(2))
    elif length == 127:
        (length,) = struct.unpack(">Q", await reader.readexactly(8))
    mask = await reader.readexactly(4) if is_masked else bytes(4)
    payload = await reader.readexactly(length)
    key = (mask * (length // 4 + 1))[:length]
    return first, (int.from_bytes(payload, "big") ^ int.from_bytes(key, "big")).to_bytes(length, "big")


def header(first, length):
    if length < 126:
        return bytes([first, length])
    return bytes([first, 126]) + struct.pack(">H", length) if length < 65536 else bytes([first, 127]) + struct.pack(">Q", length)


async def answer_badly(reader, writer):
    """Echoes every frame unchanged, including Pings and invalid Closes, and never closes a connection."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        key = next(line.split(":", 1)[1].strip() for line in head if line.lower().startswith("sec-websocket-key:"))
        accept = base64.b64encode(hashlib.sha1((key + GUID).encode()).digest()).decode()
        writer.write(("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                      f"Sec-WebSocket-Accept: {accept}\r\n\r\n").encode())
        while True:
            first, payload = await frame(reader)
            writer.write(header(first, len(payload)) + payload)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError, StopIteration):
        writer.close()


async def faulty():
    server = await asyncio.start_server(answer_badly, "127.0.0.1", 0, limit=1 << 25)
    tell(port=server.sockets[0].getsockname()[1])
    await server.serve_forever()


asyncio.run({"echo": echo, "faulty": faulty, "drive": drive, "serve": serve, "client": client}[sys.argv[1]](*sys.argv[2:]))
# A normal exit would abort in the threads of kosoku's runtime, although all results are written.
os._exit(0)
