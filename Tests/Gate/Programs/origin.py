"""An HTTP backend that records every request, and answers correctly or incorrectly depending on the path.

Listens at a free port of 127.0.0.1. Writes lines of JSON: {"port": N} first, then for each request
{"connection": n, "head": [lines], "length": bytes of the body, "sha256": its digest}, and for bytes that are not a
request {"connection": n, "broken": "hex"}.
"""
import asyncio
import hashlib
import itertools
import json

numbers = itertools.count(1)


def tell(**event):
    print(json.dumps(event), flush=True)


async def chunks(reader):
    while True:
        size = int((await reader.readuntil(b"\r\n")).strip(), 16)
        data = await reader.readexactly(size)
        if await reader.readexactly(2) != b"\r\n":
            raise ValueError("chunk")
        if size == 0:
            return
        yield data


async def body(reader, fields):
    if fields.get("transfer-encoding") == "chunked":
        async for data in chunks(reader):
            yield data
    left = int(fields.get("content-length", 0))
    while left > 0:
        data = await reader.read(min(left, 65536))
        if not data:
            raise asyncio.IncompleteReadError(b"", left)
        left -= len(data)
        yield data


def plain(text, *fields, status="200 OK"):
    lines = [f"HTTP/1.1 {status}", *fields, f"Content-Length: {len(text)}", "", text]
    return "\r\n".join(lines).encode()


ANSWERS = {
    "/chunked": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n4\r\ndefg\r\n0\r\nX-Trailer: dropped\r\n\r\n",
    "/204": b"HTTP/1.1 204 No Content\r\nX-Kept: yes\r\n\r\n",
    "/304": b"HTTP/1.1 304 Not Modified\r\nETag: \"x\"\r\n\r\n",
    "/interim": b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n" + plain("after"),
    "/hop": plain("hop", "Connection: X-Hop, close", "X-Hop: secret", "Keep-Alive: timeout=9", "X-Attest-Key-Id: spoofed",
                  "X-Request-Id: spoofed", "Set-Cookie: a=b", "Set-Cookie: c=d", "Date: Sun, 06 Nov 1994 08:49:37 GMT"),
    "/bad/both": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
    "/bad/lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
    "/bad/status": b"HTTP/1.1 99 No\r\n\r\n",
    "/bad/line": b"nonsense\r\n\r\n",
    "/bad/head": b"HTTP/1.1 200 OK\r\nNo colon\r\n\r\n",
    "/bad/101": b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n" + plain("behind"),
    "/bad/large": b"HTTP/1.1 200 OK\r\nX: " + b"x" * 70000 + b"\r\n\r\n",
    "/bad/nothing": b"",
}
# The connection closes after these answers; those below /cut are truncated.
CUT = {
    "/cut/length": b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc",
    "/cut/chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
    "/cut/badchunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n",
    "/until-close": b"HTTP/1.1 200 OK\r\n\r\nall of it",
    "/http10": b"HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nold",
}


async def answer(reader, writer, number):
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")[:-2]
    fields = {name.lower(): value.strip() for name, value in (line.split(":", 1) for line in head[1:])}
    path = head[0].split(" ")[1]
    if path == "/early":
        writer.write(plain("too much", status="413 Content Too Large"))
        tell(connection=number, head=head, length=0, sha256="")
        await writer.drain()
        return False
    digest, length = hashlib.sha256(), 0
    async for data in body(reader, fields):
        digest.update(data)
        length += len(data)
    tell(connection=number, head=head, length=length, sha256=digest.hexdigest())
    if head[0].startswith("HEAD "):
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1234\r\n\r\n")
    elif path in CUT:
        writer.write(CUT[path])
        return False
    else:
        writer.write(ANSWERS.get(path, plain(digest.hexdigest())))
    await writer.drain()
    # "/stale" closes without announcing it.
    return not path.startswith("/bad") and path not in ("/stale", "/hop")


async def serve(reader, writer):
    number = next(numbers)
    try:
        while await answer(reader, writer, number):
            pass
    except asyncio.IncompleteReadError as error:
        if error.partial:
            tell(connection=number, broken=error.partial.hex())
    except (ConnectionError, ValueError) as error:
        tell(connection=number, broken=repr(error))
    finally:
        writer.close()


async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    tell(port=server.sockets[0].getsockname()[1])
    await server.serve_forever()


asyncio.run(main())
