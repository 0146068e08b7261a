"""A backend that records every received byte and accepts every opening handshake.

Listens at a free port of 127.0.0.1. Writes lines of JSON: {"port": N} first, then for each connection
{"connection": n}, {"connection": n, "head": [lines]} and {"connection": n, "bytes": "hex of the following bytes"}.
"""
import asyncio
import base64
import hashlib
import itertools
import json

numbers = itertools.count(1)


def tell(**event):
    print(json.dumps(event), flush=True)


def accept(head):
    key = next((line.split(":", 1)[1].strip() for line in head if line.lower().startswith("sec-websocket-key:")), "")
    digest = hashlib.sha1((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest()
    return base64.b64encode(digest).decode()


async def serve(reader, writer):
    number = next(numbers)
    tell(connection=number)
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")[:-2]
        tell(connection=number, head=head)
        answer = f"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept(head)}\r\n\r\n"
        writer.write(answer.encode())
        while more := await reader.read(65536):
            tell(connection=number, bytes=more.hex())
    except (asyncio.IncompleteReadError, ConnectionError) as error:
        tell(connection=number, bytes=getattr(error, "partial", b"").hex())
    finally:
        writer.close()


async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    tell(port=server.sockets[0].getsockname()[1])
    await server.serve_forever()


asyncio.run(main())
