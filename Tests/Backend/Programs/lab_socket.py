#!/usr/bin/python3
"""Misuses and loads the socket of a device lab: lab_socket.py URL PROCESS

Tries other tokens, messages that are too long or no events, and a second page; then sends 10,000 events. Prints the
resident memory of the process in KiB; exits 1 if an answer is not as expected.
"""

import asyncio
import json
import sys

import websockets

page, process = sys.argv[1], sys.argv[2]
origin, token = page.split("/#")
address = origin.replace("http:", "ws:") + "/lab"


def connect():
    return websockets.connect(address, origin=origin, max_size=1 << 20)


async def hello(socket, value=token):
    await socket.send(json.dumps({"event": "hello", "value": value}))


async def answer(socket, kind):
    while True:
        message = json.loads(await asyncio.wait_for(socket.recv(), 10))
        if kind in message:
            return message[kind]


async def closing(socket):
    try:
        while True:
            await asyncio.wait_for(socket.recv(), 10)
    except websockets.ConnectionClosed as closed:
        return closed.rcvd.code, closed.rcvd.reason


def check(found, expected):
    if found != expected:
        print(f"expected {expected}, found {found}")
        sys.exit(1)


async def run():
    for first in ["", "00", token[:-1]]:
        async with connect() as socket:
            await hello(socket, first)
            check(await closing(socket), (4001, "open the URL that attest lab has printed"))
    async with connect() as socket:
        await socket.send(json.dumps({"event": "tab", "value": "settings"}))
        check((await closing(socket))[0], 4001)
    async with connect() as socket:
        await hello(socket)
        before = await answer(socket, "state")
        await socket.send(json.dumps({"event": "reboot"}))
        check(await answer(socket, "error"), "unknown event: reboot")
        await socket.send(b"\x00")
        check(await answer(socket, "error"), "not an event: binary")
        await socket.send(" " * (64 << 10) + "{}")
        check((await closing(socket))[0], 1009)
    async with connect() as first:
        await hello(first)
        check(await answer(first, "state"), before)
        async with connect() as second:
            await hello(second)
            check(await closing(first), (4002, "this lab is open in another tab"))
            check(await answer(second, "state"), before)
            for number in range(10_000):
                await second.send(json.dumps({"event": "username", "value": f"user{number}"}))
                if number % 100 == 99:
                    while (await answer(second, "state"))["username"] != f"user{number}":
                        pass
    with open(f"/proc/{process}/status") as status:
        print(next(line.split()[1] for line in status if line.startswith("VmRSS:")))


asyncio.run(run())
