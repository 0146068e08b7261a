"""An echo server that is independent of the gate.

    backend.py websocket                    Python's websockets, on a free port of 127.0.0.1
    backend.py tls CERTIFICATE KEY          the same with TLS
    backend.py unix PATH                    the same at a Unix socket
    backend.py tcp                          plain TCP
    backend.py silent                       TCP that reads and never answers

Writes lines of JSON: {"place": port or path} first, then {"path": ..., "headers": [[name, value], ...]} for each
WebSocket that opens and {"closed": code} for each that closes.
"""
import asyncio
import json
import ssl
import sys

import websockets


def tell(**event):
    print(json.dumps(event), flush=True)


async def echo(socket, path=None):
    request = getattr(socket, "request", None)
    headers = request.headers if request else socket.request_headers
    tell(path=request.path if request else socket.path, headers=list(headers.raw_items()))
    try:
        async for message in socket:
            await socket.send(message)
    except websockets.ConnectionClosed:
        pass
    tell(closed=socket.close_code)


async def echo_bytes(reader, writer):
    while more := await reader.read(65536):
        writer.write(more)
        await writer.drain()
    writer.close()


async def read_silently(reader, writer):
    while await reader.read(65536):
        pass
    writer.close()


async def main(kind, *arguments):
    if kind == "unix":
        server = await websockets.unix_serve(echo, arguments[0])
    elif kind == "tcp":
        server = await asyncio.start_server(echo_bytes, "127.0.0.1", 0)
    elif kind == "silent":
        server = await asyncio.start_server(read_silently, "127.0.0.1", 0)
    else:
        context = None
        if kind == "tls":
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*arguments)
        server = await websockets.serve(echo, "127.0.0.1", 0, ssl=context)
    tell(place=arguments[0] if kind == "unix" else list(server.sockets)[0].getsockname()[1])
    await asyncio.Future()


asyncio.run(main(*sys.argv[1:]))
