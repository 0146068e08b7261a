"""A disk that loses what was not flushed when the power is cut."""
import socket
import struct
import threading

# PostgreSQL keeps 80 MB of its log, and may need twice as much.
STATE_SIZE = 512 << 20
SECTOR = 512


class Disk:
    """A disk with a write cache that a cut of the power empties, served to QEMU by the NBD protocol.

    What the machine has flushed, or written with forced unit access, is durable. The contents that each other block had
    since then are kept: a cut chooses one of them for each block."""

    def __init__(self, content, place, chance, ignores_flushes):
        self.durable = bytearray(content)
        self.place, self.chance, self.ignores_flushes = place, chance, ignores_flushes
        self.current, self.unflushed, self.turn = bytearray(self.durable), {}, threading.Lock()
        self.listener = self.connection = None
        # The number of blocks in the cache at which the power goes away by itself; `fallen` says that it has.
        self.limit, self.fallen = None, threading.Event()

    def start(self):
        """Serves the disk as it is after a cut."""
        self.current, self.unflushed = bytearray(self.durable), {}
        self.limit = None
        self.fallen.clear()
        self.place.unlink(missing_ok=True)
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(self.place))
        self.listener.listen()
        threading.Thread(target=self.serve, daemon=True).start()

    def cut(self):
        """Takes the power away: within three seconds in the middle of a write, otherwise between two. Returns how many
        blocks were not flushed, and how many of them keep a new content."""
        self.limit = self.chance.randint(1, 24)
        self.fallen.wait(3)
        with self.turn:
            self.listener.close()
            if self.connection:
                # A request that is on its way is not answered any more.
                self.connection.shutdown(socket.SHUT_RDWR)
            kept = 0
            # Of all that was not flushed, a share that differs from cut to cut reached the disk.
            share = self.chance.choice([0, 0.1, 0.5, 0.9, 1])
            for sector, contents in self.unflushed.items():
                if self.chance.random() < share:
                    self.durable[sector * SECTOR:(sector + 1) * SECTOR] = self.chance.choice(contents)
                    kept += 1
            return len(self.unflushed), kept

    def save(self, path):
        """Writes the durable content to a sparse file."""
        step = 1 << 20
        with open(path, "wb") as file:
            file.truncate(STATE_SIZE)
            for start in range(0, STATE_SIZE, step):
                part = self.durable[start:start + step]
                if any(part):
                    file.seek(start)
                    file.write(part)

    def write(self, offset, data, is_forced):
        self.current[offset:offset + len(data)] = data
        for sector in range(offset // SECTOR, (offset + len(data) + SECTOR - 1) // SECTOR):
            content = bytes(self.current[sector * SECTOR:(sector + 1) * SECTOR])
            if is_forced and not self.ignores_flushes:
                self.durable[sector * SECTOR:(sector + 1) * SECTOR] = content
                self.unflushed.pop(sector, None)
            else:
                self.unflushed.setdefault(sector, []).append(content)

    def flush(self):
        if self.ignores_flushes:
            return
        for sector in self.unflushed:
            self.durable[sector * SECTOR:(sector + 1) * SECTOR] = self.current[sector * SECTOR:(sector + 1) * SECTOR]
        self.unflushed = {}

    # The protocol: https://github.com/NetworkBlockDevice/nbd/blob/master/doc/proto.md

    def serve(self):
        try:
            self.connection, _ = self.listener.accept()
            self.negotiate()
            self.transmit()
        except (OSError, EOFError):
            # The machine has ended.
            return

    def receive(self, count):
        data = bytearray()
        while len(data) < count:
            part = self.connection.recv(count - len(data))
            if not part:
                raise EOFError
            data += part
        return bytes(data)

    def negotiate(self):
        # NBDMAGIC, IHAVEOPT, fixed newstyle without zeroes.
        self.connection.sendall(b"NBDMAGIC" + struct.pack(">QH", 0x49484156454F5054, 3))
        self.receive(4)
        while True:
            _, option, length = struct.unpack(">QII", self.receive(16))
            self.receive(length)

            def reply(kind, text=b""):
                self.connection.sendall(struct.pack(">QIII", 0x3E889045565A9, option, kind, len(text)) + text)
            # Has flags, flush and forced unit access.
            flags = 1 | 4 | 8
            if option == 1:
                self.connection.sendall(struct.pack(">QH", STATE_SIZE, flags))
                return
            if option in (6, 7):
                reply(3, struct.pack(">HQH", 0, STATE_SIZE, flags))
                reply(1)
                if option == 7:
                    return
            else:
                reply(0x80000001)

    def transmit(self):
        while True:
            _, flags, kind, handle, offset, length = struct.unpack(">IHHQQI", self.receive(28))
            data = self.receive(length) if kind == 1 else b""
            if kind == 2:
                return
            with self.turn:
                answer = b""
                if kind == 0:
                    answer = bytes(self.current[offset:offset + length])
                elif kind == 1:
                    self.write(offset, data, flags & 1)
                    if self.limit is not None and len(self.unflushed) >= self.limit:
                        self.fallen.set()
                        return
                elif kind == 3:
                    self.flush()
                self.connection.sendall(struct.pack(">IIQ", 0x67446698, 0, handle) + answer)
