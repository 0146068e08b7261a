"""A virtual machine with Debian, in which systemd runs the programs of packages, and a simulated device outside of it:
what scripts/machine and scripts/power share."""
import base64
import ctypes
import hashlib
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

PROJECT = pathlib.Path(__file__).resolve().parent.parent
CACHE = PROJECT / ".build/machine"
RELEASES = {"12": "bookworm", "13": "trixie"}

# What the machine contains besides Debian's essential packages and those that the installed packages depend on.
PACKAGES = ["systemd", "systemd-sysv", "udev", "dbus", "kmod", "iproute2", "procps", "init-system-helpers",
            "ca-certificates", "apt", "curl", "initramfs-tools", "linux-image-cloud-amd64"]

# The start of Linux in the machine needs these modules alone.
MODULES = "virtio_pci\nvirtio_blk\next4\n"

# Runs each command that arrives on the port, and answers with its exit status and its output.
AGENT = r"""#!/bin/bash
until [[ -e /dev/virtio-ports/machine ]]; do sleep 0.2; done
exec 3<>/dev/virtio-ports/machine
cd /root
printf 'ready %s -\n' "$(cat /proc/sys/kernel/random/boot_id)" >&3
while read -r number seconds command <&3; do
  status=0
  command=$(base64 -d <<<"$command")
  timeout --kill-after=5 "$seconds" bash -c "$command" </dev/null >/run/machine.out 2>&1 3>&- || status=$?
  printf '%s %s %s\n' "$number" "$status" "$(base64 -w0 </run/machine.out)-" >&3
done
"""

FILES = {
    "/usr/local/sbin/machine": AGENT,
    "/etc/systemd/system/machine.service": """[Unit]
After=multi-user.target
[Service]
ExecStart=/usr/local/sbin/machine
Environment=HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive
Restart=always
TimeoutStopSec=5
[Install]
WantedBy=multi-user.target
""",
    "/etc/systemd/network/machine.network": "[Match]\nName=e*\n[Network]\nAddress=10.0.2.15/24\nGateway=10.0.2.2\n",
    "/etc/fstab": "/dev/vda / ext4 defaults 0 0\n/dev/vdb /mnt ext4 ro 0 0\n",
    "/etc/hosts": "127.0.0.1 localhost machine\n",
    "/etc/hostname": "machine\n",
}


class Failed(Exception):
    """A step did not do what it has to."""


def fail(text, status):
    print(f"error: {text}", file=sys.stderr)
    sys.exit(status)


def run(*command, within=60, **options):
    """Runs a program of this computer, and returns its output."""
    try:
        done = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=within, **options)
    except subprocess.TimeoutExpired as error:
        raise Failed(f"{command[0]} runs for longer than {within} s") from error
    if done.returncode != 0:
        raise Failed(f"{' '.join(map(str, command))}: exit status {done.returncode}\n{done.stdout.strip()}")
    return done.stdout


def await_true(condition, within, what):
    """Waits until `condition` returns something, and returns that. `what` returns or is the text of the failure."""
    end = time.monotonic() + within
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(0.3)
    raise Failed(f"after {within} s: {what() if callable(what) else what}")


# The disk.

def debian_sources(release):
    """This computer's sources of Debian's packages, for a release of Debian."""
    fields = run("apt-get", "indextargets", "--format", "$(ORIGIN) $(CREATED_BY) deb $(SITE) $(RELEASE) $(COMPONENT)")
    own = re.search(r"^VERSION_CODENAME=(\w+)$", pathlib.Path("/etc/os-release").read_text(), re.M).group(1)
    sources = set(re.findall(r"^Debian Packages (deb .*)$", fields, re.M))
    return "\n".join(sorted(re.sub(rf" {own}\b", f" {release}", source) for source in sources)) + "\n"


def dependencies(package):
    """The names of the packages that a package depends on."""
    field = run("dpkg-deb", "--field", package, "Depends")
    return sorted({re.match(r"\s*([a-z0-9.+-]+)", part).group(1) for part in field.split(",")})


def make_root(root, release, packages):
    """Installs Debian in the folder `root`, with the files of the machine."""
    install_debian(root, release, packages)
    for path, text in FILES.items():
        (root / path[1:]).write_text(text)
    (root / "usr/local/sbin/machine").chmod(0o755)
    (root / "var/log/journal").mkdir(exist_ok=True)
    (root / "etc/initramfs-tools/modules").write_text(MODULES)
    (root / "etc/initramfs-tools/conf.d/machine").write_text("MODULES=list\n")
    run("chroot", root, "systemctl", "--quiet", "enable", "machine.service", "systemd-networkd.service")
    run("chroot", root, "update-initramfs", "-u", within=600)


def install_debian(root, release, packages):
    """Installs Debian in the folder `root`."""
    done = subprocess.run(
        ["mmdebstrap", "--quiet", "--mode=root", "--variant=essential", f"--include={','.join(packages)}",
         "--dpkgopt=path-exclude=/usr/share/man/*", "--dpkgopt=path-exclude=/usr/share/locale/*",
         "--dpkgopt=path-exclude=/usr/share/doc/*", release, str(root), "-"],
        input=debian_sources(release), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=1800)
    if done.returncode != 0:
        raise Failed(f"mmdebstrap: {done.stdout[-3000:]}")


def copy_libraries(root, folder):
    """Copies the shared libraries of the Debian in `root`, and the program that loads them."""
    folder.mkdir()
    for library in [*root.glob("usr/lib/*-linux-gnu/*.so*"), *root.glob("usr/lib64/ld-linux*.so*")]:
        if library.is_file():
            shutil.copy(library, folder)


def make_disk(release, installed, further=()):
    """Returns the folder of disk, kernel, initial file system and libraries, which it makes if there is none for these
    inputs. The disk has what the packages in the files `installed` depend on, and the `further` packages of Debian."""
    packages = PACKAGES + sorted({name for package in installed for name in dependencies(package)}) + list(further)
    inputs = repr([release, packages, FILES, MODULES, debian_sources(release), "libraries"])
    folder = CACHE / hashlib.sha256(inputs.encode()).hexdigest()[:16]
    if not folder.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="new-", dir=CACHE) as work:
            root, made = pathlib.Path(work) / "root", pathlib.Path(work) / "made"
            made.mkdir()
            make_root(root, release, packages)
            for name in ["vmlinuz", "initrd.img"]:
                shutil.copy(next((root / "boot").glob(f"{name}-*")), made / name)
            copy_libraries(root, made / "lib")
            run("mke2fs", "-q", "-t", "ext4", "-d", root, made / "disk", "3G", within=600)
            made.rename(folder)
    return folder


# The machine.

class Machine:
    """A running virtual machine. The port `port` of this computer's loopback interface leads to its port 443.

    Its disk forgets what is written to it when the machine ends, unless `root` names a drive of QEMU. `drives` are further
    ones. The port is a free one, unless `port` names it."""

    def __init__(self, disk, files, work, accelerator, root=None, drives=(), port=None):
        self.console, self.commands = work / "console", 0
        with socket.socket() as free:
            free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            free.bind(("127.0.0.1", port or 0))
            self.port = free.getsockname()[1]
        run("mke2fs", "-q", "-t", "ext4", "-d", files, work / "files.ext4", "1G", within=300)
        command = [
            "qemu-system-x86_64", "-accel", accelerator, "-cpu", "max", "-m", "2048", "-smp", "2",
            "-nodefaults", "-display", "none", "-serial", f"file:{self.console}", "-device", "virtio-rng-pci",
            "-kernel", disk / "vmlinuz", "-initrd", disk / "initrd.img",
            # Drivers for a machine that is not this one have stopped it at times.
            "-append", "root=/dev/vda rw console=ttyS0 systemd.show_status=no mitigations=off "
            "modprobe.blacklist=kvm,kvm_amd,kvm_intel,powernow_k8,ata_piix,ata_generic",
            # Writes go to a temporary file.
            "-drive", root or f"file={disk}/disk,if=virtio,format=raw,snapshot=on",
            "-drive", f"file={work}/files.ext4,if=virtio,format=raw,readonly=on",
            *[word for drive in drives for word in ("-drive", drive)],
            "-device", "virtio-serial", "-chardev", f"socket,id=shell,path={work}/shell,server=on,wait=off",
            "-device", "virtserialport,chardev=shell,name=machine",
            "-netdev", f"user,id=net,restrict=on,hostfwd=tcp:127.0.0.1:{self.port}-:443",
            "-device", "virtio-net-pci,netdev=net",
        ]
        with open(work / "qemu.log", "wb") as log:
            self.process = subprocess.Popen(
                [str(word) for word in command], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env={**os.environ, "TMPDIR": str(work)}, preexec_fn=end_with_parent)
        self.log, self.buffer = work / "qemu.log", b""
        self.shell = socket.socket(socket.AF_UNIX)
        await_true(lambda: self.shell.connect_ex(str(work / "shell")) == 0 or self.process.poll() is not None, 30,
                   "QEMU has no port for commands")
        if self.process.poll() is not None:
            raise Failed(f"QEMU has ended: {self.log.read_text()}")

    def stop(self):
        self.process.kill()
        self.process.wait()

    def read_line(self, within):
        end = time.monotonic() + within
        while b"\n" not in self.buffer:
            self.shell.settimeout(max(end - time.monotonic(), 0.01))
            try:
                data = self.shell.recv(65536)
            except TimeoutError as error:
                raise Failed(f"the machine has not answered for {within} s") from error
            if not data:
                raise Failed(f"QEMU has ended: {self.log.read_text()}")
            self.buffer += data
        line, _, self.buffer = self.buffer.partition(b"\n")
        return line.decode().split(" ")

    def await_boot(self, within=900):
        """Waits until the machine has started, and returns the identifier of this start."""
        while True:
            fields = self.read_line(within)
            if fields[0] == "ready":
                return fields[1]

    def send(self, command, within=120):
        """Runs a shell command as root in the machine, and returns its exit status and its output."""
        self.commands += 1
        text = base64.b64encode(command.encode()).decode()
        self.shell.sendall(f"{self.commands} {within} {text}\n".encode())
        while True:
            # The machine's own time limit comes first.
            number, status, output = self.read_line(within + 60)
            if number == str(self.commands):
                return int(status), base64.b64decode(output.rstrip("-")).decode(errors="replace").rstrip()

    def sh(self, command, within=120, status=0):
        """Runs a command, which must exit with `status`, and returns its output."""
        ended, output = self.send(command, within)
        if ended != status:
            raise Failed(f"# {command}\nexit status {ended} instead of {status}\n{output}")
        return output


def end_with_parent():
    """Ends this process when its parent has ended: PR_SET_PDEATHSIG of prctl(2)."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


# The device outside of the machine.

class Device:
    """The simulated device on this computer: attest of the same package, with the libraries of the machine."""

    def __init__(self, package, libraries, work):
        self.work, self.clients, self.libraries = work, [], libraries
        run("dpkg-deb", "--extract", package, work / "programs")
        # The commands find neither a gate of this computer nor the devices of its user.
        own = {name: value for name, value in os.environ.items()
               if not name.startswith(("SALLYPORT_", "NOTIFY_", "LISTEN_", "WATCHDOG_"))}
        self.environment = {**own, "SALLYPORT_ROOT": str(work / "root"), "XDG_DATA_HOME": str(work / "data")}
        self.authority, self.url = work / "authority", ""

    def program(self, name):
        """The command that runs a program of the package."""
        loader = next(self.libraries.glob("ld-linux*.so*"))
        return [loader, "--library-path", self.libraries, self.work / "programs/usr/bin" / name]

    def make_authority(self):
        """Makes the simulated roots, and a certificate for localhost: those of a development gate."""
        log = self.work / "dev"
        with open(log, "wb") as output:
            gate = subprocess.Popen(
                [*self.program("sallyport"), "dev", "--folder", self.authority, "--port", "0", "--upstream",
                 "ws://127.0.0.1:9"], stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=self.environment,
                preexec_fn=end_with_parent)
        try:
            await_true(lambda: "\nnext " in log.read_text(), 60,
                       lambda: "sallyport dev has not started: " + log.read_text())
        finally:
            gate.kill()
            gate.wait()

    def attest(self, command, *arguments, within=120):
        return run(*self.program("attest"), command, self.url, "--authority", self.authority, *arguments,
                   within=within, env=self.environment)

    def connect(self):
        """Opens a socket, and waits until a message has come back."""
        client = Client(self, self.work / f"client{len(self.clients)}")
        self.clients.append(client)
        client.echo("first")
        return client

    def stop(self):
        for client in self.clients:
            client.process.kill()
            client.process.wait()


class Client:
    """An open socket of the device."""

    def __init__(self, device, log):
        self.log = log
        with open(log, "wb") as output:
            self.process = subprocess.Popen(
                [*device.program("attest"), "connect", device.url, "--authority", device.authority, "--stay"],
                stdin=subprocess.PIPE, stdout=output, stderr=output, env=device.environment, preexec_fn=end_with_parent)

    def text(self):
        return self.log.read_text(errors="replace").strip()

    def echo(self, message, within=120):
        """Sends a message, and waits until it has come back."""
        self.exchange(message, lambda line: line == message, within)

    def exchange(self, message, is_answer, within=120):
        """Sends a message, waits until a message comes for which `is_answer` is true, and returns that."""
        try:
            self.process.stdin.write(message.encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            self.process.wait(30)

        def answers():
            return [line for line in self.text().splitlines() if is_answer(line)]
        await_true(lambda: answers() or self.process.poll() is not None, within, "no answer on the socket")
        if self.process.poll() is not None:
            raise Failed(f"the socket has closed: {self.text()}")
        return answers()[0]

    def await_close(self, code, within=90):
        """Waits until the gate has closed the socket with a WebSocket Close, which has this code."""
        await_true(lambda: self.process.poll() is not None, within, lambda: f"the socket is open: {self.text()}")
        if f"the server closed the socket with {code}" not in self.text():
            raise Failed(f"the socket was not closed with {code}: {self.text()}")


# The package.

def find_package(folder, name="sallyport"):
    found = sorted(folder.glob(f"{name}_*.deb"))
    if len(found) != 1:
        raise Failed(f"{folder} has {len(found)} packages {name}_*.deb instead of 1")
    return found[0]


def write_files(folder, device, packages):
    """Writes what the machine gets to the folder: packages, certificate, roots and addition to the configuration."""
    folder.mkdir()
    for package in packages:
        shutil.copy(package, folder)
    for name, copy in [("server.pem", "fullchain.pem"), ("server.key", "privkey.pem"), ("tls-ca.pem", "tls-ca.pem"),
                       ("attestation-root.pem", "attestation-root.pem"), ("receipt-root.pem", "receipt-root.pem")]:
        shutil.copy(device.authority / name, folder / copy)
    write_console_files(folder)
    (folder / "echo.service").write_text(
        "[Service]\nExecStart=/usr/bin/attest echo\n[Install]\nWantedBy=multi-user.target\n")
    (folder / "addition.yaml").write_text("""
app_attest:
  apps: [{ team_id: SALLYPORT1, bundle_id: com.example.app, environments: [development] }]
  trust: { attestation_root_file: /etc/roots/attestation-root.pem, receipt_root_file: /etc/roots/receipt-root.pem }
""")


def write_console_files(folder):
    """Writes the certificate of a console, and an authority with the client certificates of ada and bob. The first one is
    a certificate authority, too, so that curl can trust it."""
    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]

    def openssl(*arguments):
        run("openssl", *arguments, cwd=folder)

    for name, more in [("console", ["-addext", "subjectAltName=DNS:localhost"]), ("staff", [])]:
        openssl("req", "-x509", *curve, "-keyout", f"{name}.key", "-out", f"{name}.pem", "-days", "30", "-subj",
                f"/CN={name}", *more)
    for name in ["ada", "bob"]:
        openssl("req", *curve, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}")
        openssl("x509", "-req", "-in", f"{name}.csr", "-CA", "staff.pem", "-CAkey", "staff.key", "-set_serial",
                str(ord(name[0])), "-days", "30", "-out", f"{name}.pem")


def make_repository(release, package, folder, work):
    """Makes an apt repository of a newer package, which has the same files. Returns its version, and the commands with
    which a machine that has the folder as /mnt uses the repository."""
    tree, newer, keys = work / "newer", work / "newer.deb", work / "gnupg"
    run("dpkg-deb", "--raw-extract", package, tree)
    control = tree / "DEBIAN/control"
    text = re.sub(r"^(Version: .*?)(~deb\d+)?$", r"\1+newer\2", control.read_text(), count=1, flags=re.M)
    control.write_text(text)
    run("dpkg-deb", "-Znone", "--root-owner-group", "--build", tree, newer, within=300)
    shutil.rmtree(tree)
    keys.mkdir(mode=0o700)
    environment = {**os.environ, "GNUPGHOME": str(keys)}
    try:
        run("gpg", "--batch", "--passphrase", "", "--quick-generate-key", "packages@example.com", "ed25519", "sign",
            "never", env=environment)
        output = run(PROJECT / "scripts/repository", folder / "repository", "--key", "packages@example.com", "--suite",
                     release, "--url", "file:///mnt/repository", newer, within=300, env=environment)
    finally:
        run("gpgconf", "--kill", "gpg-agent", env=environment)
    commands = re.search(r"^curl .*\nprintf .*\n.*$", output, re.M).group()
    return re.search(r"^Version: (.*)$", text, re.M).group(1), commands


def configure_gate(machine):
    """Gives the gate of the installed package its configuration, its certificate and port 443."""
    machine.sh("""set -e
install -d /etc/systemd/system/sallyport.socket.d /etc/roots
printf '[Socket]\\nListenStream=\\nListenStream=443\\n' >/etc/systemd/system/sallyport.socket.d/override.conf
systemctl daemon-reload
install -m 644 /mnt/*-root.pem /etc/roots
RENEWED_LINEAGE=/mnt /usr/share/sallyport/certbot-deploy-hook
cat /mnt/addition.yaml >>/etc/sallyport/sallyport.yaml
cp -p /etc/sallyport/sallyport.yaml /root/sallyport.yaml""")


def configure(machine):
    """The same, and starts an echo server as the gate's upstream."""
    configure_gate(machine)
    machine.sh("""set -e
cp /mnt/echo.service /etc/systemd/system/
systemctl daemon-reload
systemctl --quiet enable --now echo.service""")
    machine.sh("for _ in {1..300}; do ss -Hltn sport = :8080 | grep -q . && break; sleep 0.2; done")
    machine.sh("runuser -u sallyport -- sallyport check")


def configure_backend(machine):
    """Gives the MFA backend of the installed package its configuration, keys file and gate, and the gate its route to
    the backend. Codes for phones go to the backend's log."""
    machine.sh("""set -e
mfa-backend keys make | install -o mfa -g mfa -m 400 /dev/stdin /etc/mfa/keys.json
install -m 644 /mnt/tls-ca.pem /etc/mfa/gate-ca.pem
sed -i -e 's|^  jwks: .*|  jwks: https://localhost/.well-known/sallyport/jwks.json|' \\
  -e 's|^#  ca_file: gate-ca.pem$|  ca_file: gate-ca.pem|' -e 's|^#  sink: log$|  sink: log|' /etc/mfa/mfa.yaml
cp -p /etc/mfa/mfa.yaml /root/mfa.yaml
sed -i 's|^    upstream: ws://127.0.0.1:8080$|&\\n    forward: all|' /etc/sallyport/sallyport.yaml
cp -p /etc/sallyport/sallyport.yaml /root/sallyport.yaml""")


# For each user that may have a database: its password file, its configuration, and the edits that make it use both.
DATABASES = {
    "sallyport": ("/etc/sallyport/store.password", "/etc/sallyport/sallyport.yaml", [
        r"s|^  url: sqlite:.*|  url: postgres://sallyport@localhost/sallyport\n  password_file: store.password|"]),
    "mfa": ("/etc/mfa/db.password", "/etc/mfa/mfa.yaml", [
        "s|^database: .*|database: postgres://mfa@localhost/mfa|",
        "s|^#database_password_file: .*|database_password_file: db.password|"]),
}


def configure_postgresql(machine, users=tuple(DATABASES)):
    """Gives gate and backend, or one of them, a database each, and configures them for that."""
    for name in users:
        password, configuration, edits = DATABASES[name]
        machine.sh(f"""set -e
cd /
password=$(head -c 16 /dev/urandom | base64)
printf '%s\\n%s\\n' "$password" "$password" | runuser -u postgres -- createuser --pwprompt {name}
runuser -u postgres -- createdb --owner={name} {name}
printf '%s\\n' "$password" | install -o {name} -m 400 /dev/stdin {password}
sed -i {' '.join(f"-e '{one}'" for one in edits)} {configuration}
cp -p {configuration} /root""")
