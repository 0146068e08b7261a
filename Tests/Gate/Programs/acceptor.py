"""A backend that accepts an upgrade to any protocol, and records what it receives.

Listens at a free port of 127.0.0.1. Writes lines of JSON: {"port": N} first, then {"head": [lines]} for each request,
{"target": T, "trailers": [lines]} after a chunked body, and {"target": T, "protocol": P, "bytes": "hex"} for what
arrives after an upgrade. It answers each of these bytes, so that a client knows when they are recorded.
"""
import asyncio
import base64
import hashlib
import json


def tell(**event):
    print(json.dumps(event), flush=True)


async def line(reader):
    return (await reader.readuntil(b"\n")).decode("latin-1").rstrip("\r\n")


async def lines(reader):
    found = []
    while text := await line(reader):
        found.append(text)
    return found


async def skip_body(reader, target, fields):
    if "chunked" not in fields.get("transfer-encoding", "").lower():
        await reader.readexactly(int(fields.get("content-length", 0)))
        return
    while size := int((await line(reader)).split(";")[0], 16):
        await reader.readexactly(size + 2)
    tell(target=target, trailers=await lines(reader))


def accept(key):
    digest = hashlib.sha1((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest()
    return base64.b64encode(digest).decode()


async def tunnel(reader, writer, target, protocol, fields):
    answer = f"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: {protocol}\r\n"
    if "sec-websocket-key" in fields:
        answer += f"Sec-WebSocket-Accept: {accept(fields['sec-websocket-key'])}\r\n"
    writer.write((answer + "\r\n").encode())
    while more := await reader.read(65536):
        tell(target=target, protocol=protocol, bytes=more.hex())
        writer.write(b"recorded")


async def serve(reader, writer):
    try:
        while True:
            head = await lines(reader)
            tell(head=head)
            target = head[0].split(" ")[1]
            fields = {name.lower(): value.strip() for name, _, value in (text.partition(":") for text in head[1:])}
            await skip_body(reader, target, fields)
            if protocol := fields.get("upgrade", "").split(",")[0].strip():
                await tunnel(reader, writer, target, protocol, fields)
                return
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError, IndexError, ValueError):
        pass
    finally:
        writer.close()


async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0, limit=1 << 20)
    tell(port=server.sockets[0].getsockname()[1])
    await server.serve_forever()


asyncio.run(main())
