"""The gate alone: sockets of a device stay open while an operator works."""
import socket
import ssl
import time

from machine_trial.console import Console
from machine_trial.trial import STOP_LIMIT, Steps, Trial
from virtual_machine import await_true, configure

STEPS = Steps()
step = STEPS.step


class Waiting:
    """A client that has connected, and waits until the gate answers."""

    def __init__(self, machine, authority):
        self.context = ssl.create_default_context(cafile=authority / "tls-ca.pem")
        self.connection = socket.create_connection(("127.0.0.1", machine.port), 300)

    def answer(self):
        """The first line of the answer."""
        with self.context.wrap_socket(self.connection, server_hostname="localhost") as stream:
            stream.sendall(b"GET /attest/challenge HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            return stream.recv(4096).decode(errors="replace").splitlines()[0]


class GateTrial(Trial):
    unit, socket, program = "sallyport.service", "sallyport.socket", "sallyport"
    configuration = "/etc/sallyport/sallyport.yaml"
    fault, faulty = "sed -i '$alimits: 7'", "limits"
    needs_repository = True

    def require_service(self):
        self.device.attest("connect", "--once", "hello", "--timeout", "60")

    def upgrade(self, command="sallyport upgrade --yes"):
        """Upgrades the gate by a command, and returns the id of the new process."""
        old, cursor = self.main_process(), self.start_of_journal()
        self.sh(command, within=600)
        new = await_true(lambda: self.main_process() not in (old, "0") and self.main_process(), 90,
                         f"the main process is still {old}")
        self.require(old in self.processes(), "the old process does not linger")
        # systemd refuses messages of a process that is not the main process yet.
        self.require("reception only permitted" not in self.journal(cursor), self.journal(cursor))
        return new


@step("the machine starts", essential=True)
def boot(trial):
    trial.await_boot()


@step("dpkg installs the package, and starts nothing", essential=True)
def install(trial):
    trial.sh("dpkg -i /mnt/sallyport_*.deb", within=600)
    trial.require(not trial.processes(), "a gate runs")
    trial.require(trial.show("UnitFileState") == "disabled", "the service is enabled")


@step("sallyport check accepts the configuration", essential=True)
def check_configuration(trial):
    configure(trial.machine)


@step("systemctl enable --now starts socket and service", essential=True)
def start(trial):
    trial.sh("systemctl enable --now sallyport.socket sallyport.service", within=300)
    status = trial.sh("sallyport status")
    trial.require(": ready, " in status, status)
    listeners = trial.sh("ss -Hltn")
    trial.require(":443 " in listeners and ":6200 " not in listeners, listeners)
    trial.require_only_own_lines()
    return "exposure " + trial.exposure(trial.unit, 1.3)


@step("a device registers, and opens a socket from outside", essential=True)
def register(trial):
    trial.device.attest("register")
    trial.require_serving()


@step("systemctl reload keeps the process and its sockets")
def reload(trial):
    client, process = trial.device.connect(), trial.main_process()
    cursor = trial.start_of_journal()
    trial.sh("systemctl reload sallyport")
    await_true(lambda: "configuration reloaded" in trial.journal(cursor), 60, "the log reports no reload")
    client.echo("after the reload")
    trial.require(trial.main_process() == process, "another process runs")


@step("sallyport upgrade, then systemctl restart: both processes drain")
def upgrade_and_restart(trial):
    old = trial.device.connect()
    process = trial.upgrade()
    old.echo("after the upgrade")
    new = trial.device.connect()
    cursor = trial.start_of_journal()
    elapsed = trial.stop("systemctl restart sallyport")
    for client in [old, new]:
        client.await_close(1001)
    trial.require_orderly(cursor)
    trial.require(trial.main_process() != process, "the process is the same")
    trial.require_serving()
    return f"the restart took {elapsed:.0f} s"


@step("dpkg -i upgrades, then systemctl stop: both processes drain")
def reinstall_and_stop(trial):
    old = trial.device.connect()
    trial.upgrade("dpkg -i /mnt/sallyport_*.deb")
    old.echo("after the upgrade")
    new = trial.device.connect()
    cursor = trial.start_of_journal()
    elapsed = trial.stop("systemctl stop sallyport")
    for client in [old, new]:
        client.await_close(1001)
    trial.require_orderly(cursor)
    result = trial.show("Result")
    trial.require(result == "success", f"the result of the unit is {result}")
    trial.require(not trial.processes(), "a process of the gate runs")
    trial.sh("systemctl start sallyport", within=200)
    trial.require_serving()
    return f"the stop took {elapsed:.0f} s"


@step("sallyport upgrade twice, then drain: all processes drain, and the next client starts the gate")
def drain(trial):
    clients = []
    for _ in range(2):
        clients.append(trial.device.connect())
        trial.upgrade()
    for client in clients:
        client.echo("after the upgrades")
    cursor, began = trial.start_of_journal(), time.monotonic()
    trial.sh("sallyport drain --yes")
    for client in clients:
        client.await_close(1001)
    await_true(lambda: trial.show("ActiveState") == "inactive", 200, "the unit does not stop")
    elapsed = time.monotonic() - began
    trial.require(elapsed < STOP_LIMIT, f"the drain took {elapsed:.0f} s")
    trial.require_orderly(cursor)
    trial.require(trial.show("Result") == "success", "the result of the unit is " + trial.show("Result"))
    trial.device.attest("connect", "--once", "hello", "--timeout", "60")
    trial.require_serving()
    return f"the drain took {elapsed:.0f} s"


@step("an upgrade with a broken configuration changes nothing")
def broken_upgrade(trial):
    client, process = trial.device.connect(), trial.main_process()
    trial.break_configuration()
    output = trial.sh("sallyport upgrade --yes -c /root/sallyport.yaml", within=200, status=69)
    trial.require(trial.faulty in output, output)
    trial.sh("systemctl reload sallyport", status=1)
    output = trial.sh("dpkg -i /mnt/sallyport_*.deb", within=600)
    trial.require(trial.faulty in output and "still the old program" in output, output)
    client.echo("after the upgrade")
    trial.repair_configuration()
    trial.require(trial.main_process() == process, "another process runs")
    trial.require_serving()


@step("a restart with a broken configuration: a waiting client is served after the repair, on port 443")
def broken_restart(trial):
    trial.break_configuration()
    cursor = trial.start_of_journal()
    trial.machine.send("systemctl restart sallyport", 200)
    client = Waiting(trial.machine, trial.device.authority)
    # Long enough for several starts.
    time.sleep(40)
    starts = trial.journal(cursor).count("status=78")
    trial.require(starts >= 2, f"the gate was started {starts} times")
    trial.require(trial.show("ActiveState", "sallyport.socket") == "active", "the socket unit is not active")
    trial.repair_configuration()
    trial.sh("systemctl restart sallyport", within=200)
    answer = client.answer()
    trial.require(" 200 " in answer + " ", answer)
    trial.require("repeated too quickly" not in trial.journal(cursor), trial.journal(cursor))
    listeners = trial.sh("ss -Hltn")
    trial.require(":443 " in listeners and ":6200 " not in listeners, listeners)
    trial.require_serving()
    return f"{starts} starts failed"


@step("kill -9: systemd starts the gate again")
def kill(trial):
    process = trial.main_process()
    trial.sh(f"kill -9 {process}")
    trial.await_another_process(process, 120, "systemd does not start the gate")
    trial.require_serving()


@step("kill -9 after an upgrade: the old process closes its sockets, and systemd starts the gate again")
def kill_after_upgrade(trial):
    old = trial.device.connect()
    process = trial.upgrade()
    old.echo("after the upgrade")
    began = time.monotonic()
    trial.sh(f"kill -9 {process}")
    old.await_close(1001)
    trial.await_another_process(process, 120, "systemd does not start the gate")
    elapsed = time.monotonic() - began
    trial.require_serving()
    return f"served again after {elapsed:.0f} s"


@step("SIGSTOP: the watchdog restarts the gate")
def watchdog(trial):
    process, cursor = trial.main_process(), trial.start_of_journal()
    trial.sh(f"kill -STOP {process}")
    trial.await_another_process(process, 240, "the watchdog does not restart the gate")
    trial.require("Watchdog timeout" in trial.journal(cursor), trial.journal(cursor))
    trial.require_serving()


@step("systemctl enable --now sallyport-console: people sign in by certificate, and a reload takes a role away")
def console(trial):
    people = Console(trial, "sallyport-console.service", "sallyport", "/keys")
    # The shipped configuration has no console.
    trial.sh(f"sed -i '/^  listen: unix:.run.sallyport.admin.sock$/a\\  console:' {trial.configuration}")
    people.start()
    people.sign_in()
    people.take_role_away()
    people.hang()
    people.stop()
    return "exposure " + trial.exposure(people.unit, 1.2)


@step("apt upgrade installs the newer version from a repository, and the sockets stay")
def apt_upgrade(trial):
    client, (newer, commands) = trial.device.connect(), trial.repository
    try:
        trial.sh(commands)
        # The machine reaches no repository of Debian.
        trial.sh("rm -f /etc/apt/sources.list && apt-get -o APT::Update::Error-Mode=any update", within=300)
        trial.upgrade("apt-get --yes upgrade")
    finally:
        trial.machine.send("rm -f /etc/apt/keyrings/sallyport.asc /etc/apt/sources.list.d/sallyport.sources")
    client.echo("after the upgrade")
    version = trial.sh("dpkg-query --show --showformat '${Version}' sallyport")
    trial.require(version == newer, f"the version is {version}")
    trial.require_serving()


@step("after a reboot the gate serves, and knows the device")
def reboot(trial):
    trial.reboot()
    trial.require_serving()


@step("dpkg --purge closes the sockets, and leaves nothing behind")
def purge(trial):
    client = trial.device.connect()
    trial.sh("dpkg --purge sallyport", within=300)
    client.await_close(1001)
    trial.require(not trial.processes(), "a process of the gate runs")
    # The operator's own port stays.
    trial.sh("rm -r /etc/systemd/system/sallyport.socket.d && systemctl daemon-reload")
    left = trial.sh("find / /run -xdev -name '*sallyport*' -not -path '/root/*' -not -path '/var/log/*'")
    trial.require(not left, "left behind:\n" + left)
    units = "".join(trial.machine.send(f"systemctl {command} --no-legend 'sallyport*'")[1]
                    for command in ["list-units --all", "list-unit-files"])
    trial.require(not units, "units:\n" + units)
    trial.require(":443 " not in trial.sh("ss -Hltn"), "port 443 is open")
