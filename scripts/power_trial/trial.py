"""A machine whose power is cut again and again, while devices outside use what runs in it."""
import random
import shutil
import threading
import time

from power_trial.disk import Disk, STATE_SIZE
from virtual_machine import Failed, Machine, await_true, run

# The folder of the disk with the cache. Those of the services are in it, and are mounted at their places.
STATE = "/srv/state"


class Trial:
    """What the trials share. Devices of two workers use the services at the same time."""

    # The folders of /var/lib that are on the disk with the cache.
    folders = []
    # The seconds until a cut.
    seconds = (8, 20)
    # The packages of this project.
    packages = ["sallyport"]

    def __init__(self, arguments, disk, device, work):
        self.arguments, self.disk, self.device, self.work = arguments, disk, device, work
        self.seed = arguments.seed if arguments.seed is not None else random.SystemRandom().randrange(1 << 32)
        self.chance = random.Random(self.seed)
        self.root = work / "root.qcow2"
        self.starts, self.machine, self.port = 0, None, None
        if arguments.postgresql:
            self.folders = [*self.folders, "postgresql"]
        # Lets the power be cut at once.
        self.is_due = threading.Event()
        empty = work / "state.ext4"
        run("mke2fs", "-q", "-t", "ext4", "-L", "state", empty, f"{STATE_SIZE >> 10}k")
        self.state = Disk(empty.read_bytes(), work / "state.socket", self.chance, arguments.control)

    # What differs.

    def configure(self):
        """Configures and starts the services of the installed packages."""
        raise NotImplementedError

    def require_serving(self):
        """Waits until the services serve."""
        raise NotImplementedError

    def act(self, number, chance):
        """Lets a device of the worker `number`, 0 or 1, do something. Only worker 0 may run commands in the machine."""
        raise NotImplementedError

    def check(self):
        """What was acknowledged and does not hold."""
        raise NotImplementedError

    def totals(self):
        """How many acts of each kind were acknowledged."""
        raise NotImplementedError

    # The machine.

    def start(self, keeps=False):
        """Starts the machine. Only the first start changes its own disk."""
        self.starts += 1
        place = self.work / f"start{self.starts}"
        place.mkdir()
        self.state.start()
        self.machine = Machine(
            self.disk, self.work / "files", place, "kvm" if self.arguments.kvm else "tcg,thread=multi",
            root=f"file={self.root},if=virtio,format=qcow2,snapshot={'off' if keeps else 'on'}",
            drives=[f"file=nbd:unix:{self.state.place},if=virtio,format=raw,cache=writeback"], port=self.port)
        # A device has a key for each gate, which it knows by its address.
        self.port = self.machine.port
        self.device.url = f"wss://localhost:{self.port}/"
        # A machine whose disk is damaged asks for an administrator.
        self.machine.await_boot(within=600)

    def end(self):
        if self.machine:
            self.machine.stop()
            if self.arguments.log:
                shutil.copy(self.machine.console, self.arguments.log / f"console{self.starts}.txt")
            self.machine = None

    def prepare(self):
        """Installs and configures the services, whose folders are on the disk with the cache."""
        run("qemu-img", "create", "-q", "-f", "qcow2", "-b", self.disk / "disk", "-F", "raw", self.root)
        self.start(keeps=True)
        mounts = "".join(f"{STATE}/{name} /var/lib/{name} none bind 0 0\n" for name in self.folders)
        self.machine.sh(f"""set -e
if [[ -d /var/lib/postgresql ]]; then systemctl stop postgresql 'postgresql@*'; fi
printf '%s' 'LABEL=state {STATE} ext4 defaults 0 2
{mounts}' >>/etc/fstab
install -d {STATE}
mount {STATE}
for name in {' '.join(self.folders)}; do
  mkdir -p /var/lib/$name
  cp -a /var/lib/$name {STATE}/
  mount /var/lib/$name
done
systemctl daemon-reload
if [[ -d /var/lib/postgresql ]]; then systemctl start postgresql; fi
dpkg -i {' '.join(f'/mnt/{package}_*.deb' for package in self.packages)}""", within=900)
        self.configure()
        self.machine.sh("sync")
        self.machine.send("systemd-run --quiet --on-active=1 systemctl poweroff")
        await_true(lambda: self.machine.process.poll() is not None, 200, "the machine does not stop")
        # All that was written by then is on the disk.
        self.state.durable = bytearray(self.state.current)
        self.end()

    def save_journal(self):
        """Writes the journal of this start to the folder of --log, if the machine still answers."""
        try:
            _, text = self.machine.send("journalctl --no-pager -b", 60)
            (self.arguments.log / f"journal{self.starts}.txt").write_text(text)
        except (Failed, OSError) as error:
            print(f"  | no journal: {error}", flush=True)

    # The cuts.

    def work_until_cut(self):
        """Lets devices use the services, and cuts the power meanwhile. Returns what was acknowledged."""
        stopped, faults, before = threading.Event(), [], self.totals()
        self.is_due.clear()

        def act(number):
            chance = random.Random(f"{self.seed}-{self.starts}-{number}")
            try:
                while not stopped.is_set():
                    self.act(number, chance)
            except Exception as error:
                # An answer that the cut took away acknowledges nothing.
                if not (stopped.is_set() or self.state.fallen.is_set()):
                    faults.append(error)
        workers = [threading.Thread(target=act, args=[number]) for number in range(2)]
        for worker in workers:
            worker.start()
        self.is_due.wait(self.chance.uniform(*self.seconds))
        # First the disk, then the processor: what the machine still says is not acknowledged by anything on the disk.
        unflushed, kept = self.state.cut()
        stopped.set()
        self.end()
        if self.arguments.log:
            self.state.save(self.arguments.log / "state.img")
        for worker in workers:
            worker.join()
        if faults:
            raise Failed(f"before the cut: {faults[0]}")
        return {name: count - before[name] for name, count in self.totals().items()}, unflushed, kept

    def run(self):
        print(f"scripts/power: seed {self.seed}", flush=True)
        if self.arguments.log:
            self.arguments.log.mkdir(parents=True, exist_ok=True)
        self.prepare()
        lost = []
        for number in range(1, self.arguments.cuts + 2):
            try:
                self.start()
                self.require_serving()
                found = self.check()
            except Failed as error:
                found = [str(error)]
            lost += found
            print("".join(f"  | {line}\n" for text in found for line in text.splitlines()), end="", flush=True)
            if found and self.arguments.log:
                self.save_journal()
            # A store that is not what the devices know would give the same findings again.
            if found or number > self.arguments.cuts:
                break
            counts, unflushed, kept = self.work_until_cut()
            acknowledged = ", ".join(f"{count} {name}" for name, count in counts.items())
            print(f"cut {number}: {acknowledged}; {unflushed} blocks not flushed, {kept} of them kept", flush=True)
        print("acknowledged in all: " + ", ".join(f"{count} {name}" for name, count in self.totals().items()))
        return lost
