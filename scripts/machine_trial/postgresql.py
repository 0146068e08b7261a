"""Gate and MFA backend with PostgreSQL on one machine: the server restarts, stops, and starts later than they do."""
import time

from machine_trial.backend import BackendTrial, request
from machine_trial.trial import FORCED, Steps
from virtual_machine import Failed, await_true, configure_backend, configure_gate, configure_postgresql

STEPS = Steps()
step = STEPS.step

UNITS = ["sallyport.service", "mfa-backend.service"]


class PostgresTrial(BackendTrial):
    further = ["postgresql"]

    def query(self, database, statement):
        return self.sh(f"cd / && runuser -u postgres -- psql -qAtX -c '{statement}' {database}")

    def main_processes(self):
        return [self.main_process(unit) for unit in UNITS]

    def are_ready(self):
        """Whether both programs say that they are ready."""
        return self.machine.send("sallyport status && mfa-backend status")[0] == 0

    def await_both(self, within=120):
        """Waits until both are ready, and returns how many seconds that took."""
        began = time.monotonic()
        await_true(self.are_ready, within,
                   lambda: "not ready: " + self.machine.send("sallyport status; mfa-backend status")[1])
        return time.monotonic() - began

    def attempt(self):
        """What a device gets that signs in: nothing if it succeeds, otherwise the error."""
        try:
            self.require_service()
            return None
        except Failed as error:
            return str(error)

    def recover(self):
        self.machine.send("systemctl start postgresql", 200)
        return super().recover()


@step("the machine starts, with PostgreSQL", essential=True)
def boot(trial):
    trial.await_boot()


@step("createuser and createdb make both databases, and check accepts them", essential=True)
def prepare(trial):
    trial.sh("dpkg -i /mnt/sallyport_*.deb /mnt/sallyport-mfa_*.deb", within=900)
    configure_gate(trial.machine)
    configure_backend(trial.machine)
    configure_postgresql(trial.machine)
    trial.sh("""set -e
runuser -u mfa -- mfa-backend check --offline
runuser -u sallyport -- sallyport check --offline
runuser -u mfa -- mfa-backend store migrate
runuser -u sallyport -- sallyport store migrate""")


@step("systemctl enable --now starts gate and backend on PostgreSQL", essential=True)
def start(trial):
    trial.sh("systemctl --quiet enable --now mfa-backend.socket mfa-backend.service sallyport.socket sallyport.service",
             within=300)
    trial.await_both()
    trial.sh("runuser -u sallyport -- sallyport check && runuser -u mfa -- mfa-backend check")
    own = trial.sh("find /var/lib/sallyport /var/lib/mfa -name '*.db'")
    trial.require(not own, "SQLite is in use: " + own)


@step("devices register and accounts enrol, and their rows are in PostgreSQL", essential=True)
def enroll(trial):
    trial.enroll()
    trial.require_spent()
    trial.require_serving()
    keys = trial.query("sallyport", "SELECT count(*) FROM attested_keys")
    users = trial.query("mfa", "SELECT count(*) FROM users")
    trial.require(keys == "3" and users == "3", f"{keys} keys and {users} users instead of 3")


@step("PostgreSQL restarts: processes and sockets stay, and a device gets in again")
def restart(trial):
    client, processes = trial.open_socket(), trial.main_processes()
    began = time.monotonic()
    trial.sh("systemctl restart postgresql", within=200)
    await_true(lambda: trial.attempt() is None, 60, trial.attempt)
    elapsed = time.monotonic() - began
    client.list_devices()
    trial.require(trial.main_processes() == processes, "another process runs")
    trial.require_spent()
    return f"after {elapsed:.0f} s"


@step("PostgreSQL is stopped: requests get 503, sockets stay, and both serve again after its start")
def stop(trial):
    client, processes, token = trial.open_socket(), trial.main_processes(), trial.plain[0].token()
    path = f"/api/v1/devices/{trial.plain[0].name}"
    trial.sh("systemctl stop postgresql", within=200)
    await_true(lambda: not trial.are_ready(), 60, "both say that they are ready")
    # The gate needs no store for a challenge, and for an admission it does.
    status = request(trial.plain[0], path, token)
    trial.require(status == 503, f"a request gets {status}")
    time.sleep(20)
    trial.require(client.process.poll() is None, "the socket has closed: " + client.text())
    trial.sh("systemctl start postgresql", within=200)
    elapsed = trial.await_both()
    client.list_devices()
    trial.require(trial.main_processes() == processes, "another process runs")
    trial.require_serving()
    return f"ready {elapsed:.0f} s after the start"


@step("gate and backend start without PostgreSQL: they wait for it, and serve after its start")
def late(trial):
    trial.sh("systemctl stop postgresql", within=200)
    trial.sh("systemctl stop sallyport.socket sallyport.service mfa-backend.socket mfa-backend.service", within=300)
    trial.machine.send("systemctl start sallyport.socket sallyport.service", 200)
    trial.machine.send("systemctl start mfa-backend.socket mfa-backend.service", 200)
    time.sleep(20)
    trial.require(not trial.are_ready(), "both are ready without their database")
    sockets = trial.sh("systemctl is-active sallyport.socket mfa-backend.socket")
    trial.require(sockets.split() == ["active", "active"], "a socket unit is not active:\n" + sockets)
    restarts = trial.show("NRestarts")
    trial.sh("systemctl start postgresql", within=200)
    elapsed = trial.await_both()
    trial.require_serving()
    trial.require_spent()
    return f"the backend was started {restarts} times, and was ready {elapsed:.0f} s after PostgreSQL"


@step("a reboot: both stop before PostgreSQL, and start although it is late")
def reboot(trial):
    trial.sh("""set -e
install -d /etc/systemd/system/postgresql@.service.d
printf '[Service]\\nExecStartPre=+/bin/sleep 20\\n' >/etc/systemd/system/postgresql@.service.d/late.conf
systemctl daemon-reload""")
    client = trial.open_socket()
    trial.reboot()
    client.await_close(1001)
    trial.await_both()
    trial.require_serving()
    trial.require_spent()
    log = trial.sh("journalctl --no-pager -b -1 -u sallyport.service -u mfa-backend.service | tail -n 40")
    trial.require(not FORCED.search(log), "the stop was not orderly:\n" + log)
    trial.require("store unavailable" not in log and '"level":"error"' not in log,
                  "PostgreSQL stopped first:\n" + log)


@step("store check finds both databases in order")
def check(trial):
    trial.sh("runuser -u sallyport -- sallyport store check && runuser -u mfa -- mfa-backend store check")
