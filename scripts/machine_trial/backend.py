"""The MFA backend, which the gate of the same machine fronts: an operator works while accounts use both."""
import concurrent.futures
import copy
import itertools
import json
import threading
import time

from accounts import Account
from machine_trial.console import Console
from machine_trial.trial import Steps, Trial
from phones import answer
from virtual_machine import Client, Failed, await_true, configure_backend, configure_gate

STEPS = Steps()
step = STEPS.step


class AccountSocket(Client):
    """An open socket to the MFA backend, with a session of the account."""

    def __init__(self, account, log):
        device = copy.copy(account.device)
        device.environment = account.environment
        super().__init__(device, log)
        self.account, self.numbers = account, itertools.count(1)
        account.device.clients.append(self)
        self.call("session.attach", token=account.token())

    def call(self, method, **parameters):
        """Calls an operation, and returns its result."""
        number = next(self.numbers)
        text = self.exchange(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": parameters}),
                             lambda line: f'"id":{number},' in line)
        if '"result"' not in text:
            raise Failed(f"{method} on a socket: {text}")
        return json.loads(text)["result"]

    def list_devices(self):
        """Calls an operation that needs session and database."""
        if not self.call("devices.list", username=self.account.name):
            raise Failed("the account has no device")


class Requests:
    """Accounts that send requests through the gate one after another, while the `with` block runs."""

    # Fewer have not met anything.
    LEAST = 5

    def __init__(self, accounts):
        self.accounts, self.stopped = accounts, threading.Event()
        self.durations, self.others, self.threads = [], [], []

    def __enter__(self):
        for account in self.accounts:
            thread = threading.Thread(target=self.send, args=[account, account.token()])
            thread.start()
            self.threads.append(thread)
        await_true(lambda: len(self.durations) >= len(self.accounts) or self.others, 120, "no request is answered")
        return self

    def send(self, account, token):
        while not self.stopped.is_set():
            began = time.monotonic()
            try:
                status = request(account, f"/api/v1/devices/{account.name}", token)
            except (Failed, OSError) as error:
                status = error
            self.durations.append(time.monotonic() - began)
            if status != 200:
                self.others.append(f"after {self.durations[-1]:.1f} s: {status}")

    def __exit__(self, *_):
        # What comes after the operator's command counts as well.
        time.sleep(3)
        self.stopped.set()
        for thread in self.threads:
            thread.join()

    def require_none_lost(self):
        if self.others:
            raise Failed(f"{len(self.others)} of {len(self.durations)} requests were not answered with 200:\n"
                         + "\n".join(self.others[:10]))
        if len(self.durations) < self.LEAST:
            raise Failed(f"only {len(self.durations)} requests were sent")
        return f"{len(self.durations)} requests, the longest took {max(self.durations):.1f} s"


def request(account, path, token, within=120):
    """Sends a request of the account's device through the gate, and returns the status of the answer."""
    fields = [line for line in account.attest("headers").splitlines() if ": " in line]
    return answer(account.device, path, [*fields, f"Authorization: Bearer {token}"], within)


class BackendTrial(Trial):
    unit, socket, program = "mfa-backend.service", "mfa-backend.socket", "mfa-backend"
    configuration = "/etc/mfa/mfa.yaml"
    fault, faulty = "sed -i 's/^  most_devices: 10$/  most_devices: 0/'", "most_devices"
    packages = ["sallyport", "sallyport-mfa"]

    def __init__(self, machine, device, repository=None):
        super().__init__(machine, device, repository)
        # Two accounts without a second factor, and one with authenticator and backup codes.
        self.plain = [Account(number, device, device.work) for number in range(2)]
        self.guarded = Account(2, device, device.work)
        self.sockets = itertools.count()

    def open_socket(self):
        opened = AccountSocket(self.plain[0], self.device.work / f"socket{next(self.sockets)}")
        opened.list_devices()
        return opened

    def require_service(self):
        """An account signs in by its device's key, and a used backup code stays refused."""
        scope = self.plain[0].sign_in()
        self.require(scope == "full", f"the scope of the session is {scope}")

    def require_spent(self):
        """Signs in with a backup code, after the one before was refused."""
        account = self.guarded
        scope = account.sign_in()
        self.require(scope == "mfa", f"the scope of the session is {scope}")
        self.require(not account.accepts_again(account.spent[-1]), "a used backup code was accepted")
        account.spend()

    def status(self):
        """The status that the command prints, and its exit status."""
        ended, text = self.machine.send("mfa-backend status")
        return text, ended

    def await_ready(self, within=120):
        await_true(lambda: self.status()[1] == 0, within, lambda: self.status()[0])

    def enroll(self):
        """Enrols the accounts, one of them with a second factor, of which it uses a backup code."""
        for account in [*self.plain, self.guarded]:
            account.enroll()
        self.guarded.set_up_factor()
        self.guarded.sign_in()
        self.guarded.spend()

    def recover(self):
        self.machine.send("cp -p /root/sallyport.yaml /etc/sallyport/sallyport.yaml; systemctl reset-failed", 200)
        self.machine.send("systemctl start sallyport.socket sallyport.service", 200)
        return super().recover()


@step("the machine starts, for the MFA backend", essential=True)
def boot(trial):
    trial.await_boot()


@step("dpkg installs gate and backend, and starts neither", essential=True)
def install(trial):
    trial.sh("dpkg -i /mnt/sallyport_*.deb /mnt/sallyport-mfa_*.deb", within=900)
    running = trial.sh("pgrep -x sallyport; pgrep -x mfa-backend; true")
    trial.require(not running, "a gate or a backend runs")
    for unit in ["mfa-backend.service", "mfa-backend.socket", "mfa-console.service"]:
        trial.require(trial.show("UnitFileState", unit) == "disabled", f"{unit} is enabled")


@step("systemctl enable --now starts the backend, which waits for its gate", essential=True)
def start(trial):
    configure_gate(trial.machine)
    configure_backend(trial.machine)
    trial.sh("runuser -u mfa -- mfa-backend check --offline")
    trial.sh("systemctl --quiet enable --now mfa-backend.socket mfa-backend.service", within=300)
    text, ended = trial.status()
    trial.require(ended == 1 and "not ready" in text and "gate keys" in text, f"exit status {ended}:\n{text}")
    listeners = trial.sh("ss -Hltnp sport = :8080")
    trial.require("127.0.0.1:8080 " in listeners and '"systemd"' in listeners, listeners)
    mode = trial.sh("stat --format '%U %a' /run/mfa/admin.sock /var/lib/mfa/mfa.db /run/mfa /var/lib/mfa")
    trial.require(mode.splitlines() == ["mfa 600", "mfa 600", "mfa 700", "mfa 700"], mode)


@step("the gate starts, and the backend is ready", essential=True)
def start_gate(trial):
    trial.sh("runuser -u sallyport -- sallyport check && systemctl --quiet enable --now sallyport.socket "
             "sallyport.service", within=300)
    trial.await_ready()
    trial.sh("runuser -u mfa -- mfa-backend check")
    trial.require_only_own_lines()
    return "exposure " + trial.exposure(trial.unit, 1.3)


@step("accounts enrol through the gate, and one signs in with a second factor", essential=True)
def enroll(trial):
    trial.enroll()
    trial.require_spent()
    trial.open_socket()
    trial.require_serving()


@step("systemctl reload of the backend: another policy counts, and the process and its sockets stay")
def reload(trial):
    client, process, cursor = trial.open_socket(), trial.main_process(), trial.start_of_journal()
    trial.sh(f"""sed -i -e 's/^  second_factor_for: nobody$/  second_factor_for: everyone/' \\
  -e 's/^  grace_period: 7d$/  grace_period: 0s/' {trial.configuration} && systemctl reload mfa-backend""")
    await_true(lambda: "configuration reloaded" in trial.journal(cursor), 60, "the log reports no reload")
    scope = trial.plain[0].sign_in()
    trial.require(scope == "mfa_setup", f"the scope of the session is {scope}")
    trial.repair_configuration()
    trial.sh("mfa-backend reload")
    trial.require_serving()
    client.list_devices()
    trial.require(trial.main_process() == process, "another process runs")


@step("a reload with a broken configuration of the backend changes nothing")
def broken_reload(trial):
    client, process, cursor = trial.open_socket(), trial.main_process(), trial.start_of_journal()
    trial.break_configuration()
    trial.sh("systemctl reload mfa-backend", status=1)
    await_true(lambda: "configuration reload failed" in trial.journal(cursor), 60, "the log reports no failed reload")
    output = trial.sh("mfa-backend reload", status=78)
    trial.require(trial.faulty in output, output)
    text, ended = trial.status()
    trial.require(ended == 0 and "NOT RELOADED" in text and trial.faulty in text, f"exit status {ended}:\n{text}")
    trial.require_serving()
    client.list_devices()
    trial.repair_configuration()
    trial.sh("mfa-backend reload")
    text, ended = trial.status()
    trial.require(ended == 0 and "NOT RELOADED" not in text, f"exit status {ended}:\n{text}")
    trial.require(trial.main_process() == process, "another process runs")


def operate_under_requests(trial, command):
    """Runs a command that replaces the process while accounts send requests. None may be lost, and the sockets of the
    old process are closed with 1001."""
    client, process, cursor = trial.open_socket(), trial.main_process(), trial.start_of_journal()
    with Requests(trial.plain) as requests:
        began = time.monotonic()
        trial.sh(command, within=600)
        trial.await_another_process(process, 120, "no other process runs")
        elapsed = time.monotonic() - began
    client.await_close(1001)
    trial.require_orderly(cursor)
    note = requests.require_none_lost()
    trial.require_serving()
    return f"{elapsed:.0f} s; {note}"


@step("systemctl restart of the backend: no request is lost")
def restart(trial):
    return operate_under_requests(trial, "systemctl restart mfa-backend")


@step("dpkg -i upgrades the backend: no request is lost")
def upgrade(trial):
    return operate_under_requests(trial, "dpkg -i /mnt/sallyport-mfa_*.deb")


@step("mfa-backend drain: the next request starts the backend, and none is lost")
def drain(trial):
    return operate_under_requests(trial, "mfa-backend drain")


@step("a restart with a broken configuration of the backend: requests wait until the repair")
def broken_restart(trial):
    account, token, cursor = trial.plain[0], trial.plain[0].token(), trial.start_of_journal()
    trial.break_configuration()
    trial.machine.send("systemctl restart mfa-backend", 200)
    with concurrent.futures.ThreadPoolExecutor(1) as executor:
        waiting = executor.submit(request, account, f"/api/v1/devices/{account.name}", token)
        # Long enough for several starts.
        time.sleep(20)
        trial.require(not waiting.done(), "the request does not wait")
        starts = trial.journal(cursor).count("status=78")
        trial.repair_configuration()
        trial.sh("systemctl restart mfa-backend", within=200)
        status = waiting.result()
    # The gate waits for the backend for half a minute at most, which is short for an emulated machine.
    trial.require(status in (200, 502), f"the waiting request got {status}")
    trial.require(starts >= 2, f"the backend was started {starts} times")
    trial.require("repeated too quickly" not in trial.journal(cursor), trial.journal(cursor))
    trial.require_serving()
    return f"{starts} starts failed"


@step("kill -9 of the backend: systemd starts it again, and a used code stays used")
def kill(trial):
    process = trial.main_process()
    trial.sh(f"kill -9 {process}")
    trial.await_another_process(process, 120, "systemd does not start the backend")
    trial.require_serving()
    trial.require_spent()


@step("SIGSTOP of the backend: the watchdog restarts it")
def watchdog(trial):
    process, cursor = trial.main_process(), trial.start_of_journal()
    trial.sh(f"kill -STOP {process}")
    trial.await_another_process(process, 240, "the watchdog does not restart the backend")
    trial.require("Watchdog timeout" in trial.journal(cursor), trial.journal(cursor))
    trial.require_serving()


@step("systemctl enable --now mfa-console: people sign in by certificate, one exports, and a reload takes a role away")
def console(trial):
    people = Console(trial, "mfa-console.service", "mfa", "/accounts")
    people.start()
    people.sign_in()
    people.require_answer("200", "ada", "/accounts.csv", trial.plain[0].name)
    people.require_answer("403", "bob", "/accounts.csv")
    people.take_role_away()
    people.hang()
    people.stop()
    return "exposure " + trial.exposure(people.unit, 1.2)


@step("store restore while the backend runs is refused; with both units stopped it ends all sessions")
def restore(trial):
    token, backup = trial.plain[0].token(), "/var/lib/mfa/monday.db"
    trial.sh(f"runuser -u mfa -- mfa-backend store backup {backup}")
    trial.sh(f"runuser -u mfa -- mfa-backend store restore {backup}", status=69)
    trial.sh("systemctl stop mfa-backend.socket mfa-backend.service", within=200)
    trial.require(not trial.processes(), "a backend runs")
    trial.sh(f"runuser -u mfa -- mfa-backend store restore {backup} && runuser -u mfa -- mfa-backend store check")
    trial.sh("systemctl start mfa-backend.socket mfa-backend.service", within=200)
    trial.await_ready()
    status = request(trial.plain[0], f"/api/v1/devices/{trial.plain[0].name}", token)
    trial.require(status == 401, f"a session of before the restore gets {status}")
    trial.require_serving()
    trial.require_spent()


@step("after a reboot the backend serves, and knows accounts and used codes")
def reboot(trial):
    trial.reboot()
    trial.await_ready()
    trial.require_serving()
    trial.require_spent()


@step("dpkg --purge of the backend closes its sockets, and leaves the keys file alone")
def purge(trial):
    client, token = trial.open_socket(), trial.plain[0].token()
    trial.sh("dpkg --purge sallyport-mfa", within=300)
    client.await_close(1001)
    trial.require(not trial.processes(), "a backend runs")
    # The operator's own files stay: backups need the keys.
    trial.sh("rm /etc/mfa/keys.json /etc/mfa/gate-ca.pem && rmdir /etc/mfa")
    left = trial.sh("find / /run -xdev \\( -name 'mfa*' -o -name '*sallyport-mfa*' \\) -not -path '/root/*' "
                    "-not -path '/var/log/*' -not -path '/proc/*'")
    trial.require(not left, "left behind:\n" + left)
    units = "".join(trial.machine.send(f"systemctl {command} --no-legend 'mfa*'")[1]
                    for command in ["list-units --all", "list-unit-files"])
    trial.require(not units, "units:\n" + units)
    # The gate goes on.
    status = request(trial.plain[0], f"/api/v1/devices/{trial.plain[0].name}", token)
    trial.require(status == 502, f"a request gets {status}")
