"""What the trials share: steps, and a machine in which systemd runs the service that the steps operate."""
import re
import time

from virtual_machine import Failed, await_true

# A stop that takes longer has run into a time limit. That of the units is 90 s; systemd's SIGKILL follows it.
STOP_LIMIT = 60
# What the journal has when systemd has ended processes by force, or has given up.
FORCED = re.compile(r"SIGKILL|status=9/KILL|[Kk]illed|timed out|Failed with result|remains running|"
                    r"repeated too quickly|left-over process")


class Steps:
    """The steps of a trial, in their order."""

    def __init__(self):
        self.steps = []

    def step(self, name, essential=False):
        """Makes a function a step. The steps after an `essential` one that has failed do not run."""
        def add(function):
            self.steps.append((name, function, essential))
            return function
        return add

    def names(self):
        return [name for name, _, _ in self.steps]

    def run(self, trial):
        """Runs the steps, and returns the number of those that failed."""
        failures = 0
        for name, function, essential in self.steps:
            began = time.monotonic()
            print(f"step {name} … ", end="", flush=True)
            try:
                note = function(trial)
                print(f"ok ({time.monotonic() - began:.0f} s{'; ' + note if note else ''})", flush=True)
            except (Failed, OSError) as error:
                failures += 1
                print("FAILED\n" + "\n".join("  | " + line for line in str(error).splitlines()), flush=True)
                if essential or not trial.recover():
                    break
        return failures


class Trial:
    """A machine, a device outside of it, and the service that the steps operate."""

    # The unit of the service and that of its socket, its program, and its configuration.
    unit, socket, program, configuration = "", "", "", ""
    # A command that makes the configuration invalid, to which the name of the file is added, and the key at fault.
    fault, faulty = "", ""
    # The packages of this project.
    packages = ["sallyport"]
    # Packages of Debian that the machine has in addition, and whether it gets an apt repository.
    further, needs_repository = [], False

    def __init__(self, machine, device, repository=None):
        """`repository` is the version that the apt repository has, and the commands with which a machine uses it."""
        self.machine, self.device, self.sh, self.repository = machine, device, machine.sh, repository
        self.boot = None

    @property
    def saved(self):
        """The copy of the configuration that is in order."""
        return "/root/" + self.configuration.rsplit("/", 1)[1]

    def show(self, name, unit=None):
        return self.sh(f"systemctl show --property={name} --value {unit or self.unit}")

    def main_process(self, unit=None):
        return self.show("MainPID", unit)

    def processes(self):
        return self.sh(f"pgrep -x {self.program} || true").split()

    def start_of_journal(self):
        """A place in the journal, for `journal`: a time, since `--after-cursor` skips the first line of a unit if the line
        at the cursor is another unit's."""
        return re.search(r"[0-9]+[.][0-9]{6}", self.sh("date +%s.%N")).group()

    def journal(self, cursor):
        return self.sh(f"journalctl --no-pager -u {self.unit} -u {self.socket} --since=@{cursor}")

    def require(self, condition, text):
        if not condition:
            raise Failed(text)

    def require_orderly(self, cursor):
        """systemd has neither killed a process nor given up since then."""
        text = self.journal(cursor)
        if FORCED.search(text):
            raise Failed("the stop was not orderly:\n" + text)

    def require_serving(self):
        """The unit is active, its main process runs, and a device is served."""
        state = self.show("ActiveState")
        self.require(state == "active", f"the unit is {state}")
        self.require(self.main_process() in self.processes(), "the main process of the unit does not run")
        self.require_service()

    def require_service(self):
        """A device outside is served."""
        raise NotImplementedError

    def require_only_own_lines(self):
        """The journal has no line of the service that its log did not write."""
        other = self.sh(f"journalctl -u {self.unit} -o cat _COMM={self.program} | grep -v '^{{' || true")
        self.require(not other, "the journal has lines that are not the service's:\n" + other)

    def await_boot(self):
        self.boot = self.machine.await_boot()
        state = await_true(lambda: re.search("running|degraded", self.machine.send("systemctl is-system-running")[1]),
                           300, "systemd does not reach its target").group()
        self.require(state == "running", f"the system is {state}: " + self.machine.send("systemctl --failed")[1])

    def reboot(self):
        """Reboots the machine, and waits until the unit is active."""
        self.machine.send("systemd-run --quiet --on-active=1 systemctl reboot")
        start = self.machine.await_boot()
        self.require(start != self.boot, "the machine has not started again")
        self.boot = start
        await_true(lambda: self.show("ActiveState") == "active", 300, "the unit is not active")

    def await_another_process(self, process, within, text):
        """Waits until the unit is active with another main process."""
        await_true(lambda: self.main_process() not in (process, "0") and self.show("ActiveState") == "active", within,
                   text)

    def stop(self, command):
        """Stops or restarts the service by a command, and returns how many seconds that took."""
        began = time.monotonic()
        self.sh(command, within=200)
        await_true(lambda: self.show("ActiveState") in ("active", "inactive", "failed"), 200, "the unit does not stop")
        elapsed = time.monotonic() - began
        self.require(elapsed < STOP_LIMIT, f"the stop took {elapsed:.0f} s")
        return elapsed

    def break_configuration(self):
        self.sh(f"{self.fault} {self.configuration}")

    def repair_configuration(self):
        self.sh(f"cp -p {self.saved} {self.configuration}")

    def exposure(self, unit, most):
        """The exposure of the unit as systemd sees it, which must be at most `most`."""
        text = self.sh(f"systemd-analyze security --no-pager {unit} | tail -n 1")
        exposure = re.search(r"[0-9]+\.[0-9]", text).group()
        self.require(float(exposure) <= most, f"the exposure of {unit} is {exposure}")
        return exposure

    def recover(self):
        """After a failed step, starts the service for the next one. Returns whether it serves."""
        try:
            self.machine.send(f"systemctl kill --signal=KILL {self.unit}", 200)
            self.machine.send(f"systemctl stop {self.unit} {self.socket}", 200)
            self.machine.send(f"cp -p {self.saved} {self.configuration}; systemctl reset-failed")
            self.machine.send(f"systemctl start {self.socket} {self.unit}", 200)
            self.require_serving()
        except (Failed, OSError) as error:
            print(f"no service for further steps: {error}", flush=True)
            return False
        return True
