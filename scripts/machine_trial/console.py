"""The console of a service, as an operator runs it for people on other machines."""
from virtual_machine import await_true

ADDRESS = "https://localhost:7443"


class Console:
    """The unit of a console: it serves people who sign in by certificate, ada as `admin` and bob as `view`."""

    def __init__(self, trial, unit, user, page):
        self.trial, self.unit, self.user, self.page = trial, unit, user, page
        self.folder = trial.configuration.rsplit("/", 1)[0] + "/console"
        self.processes = []

    def start(self):
        """Adds the settings after the line `console:` of the configuration, and enables the unit."""
        trial = self.trial
        trial.sh(f"""set -e
install -d -o {self.user} -g {self.user} -m 750 {self.folder}
install -o {self.user} -g {self.user} -m 640 /mnt/console.pem /mnt/console.key /mnt/staff.pem {self.folder}
cat >/root/console.yaml <<'END'
    listen: 127.0.0.1:7443
    url: {ADDRESS}
    cert_file: {self.folder}/console.pem
    key_file: {self.folder}/console.key
    client_ca_file: {self.folder}/staff.pem
    people:
      - {{ subject: CN=ada, role: admin }}
      - {{ subject: CN=bob, role: view }}
END
sed -i '/^  console:$/r /root/console.yaml' {trial.configuration}
runuser -u {self.user} -- {trial.program} check
systemctl --quiet enable --now {self.unit}""", within=300)
        self.require_active()
        self.processes = trial.processes()

    def require_active(self):
        state = self.trial.show("ActiveState", self.unit)
        self.trial.require(state == "active", f"the unit is {state}")

    def ask(self, name, *arguments):
        """Sends a request as this person, and returns body and status."""
        return self.trial.sh(
            f"curl -sS --cacert /mnt/console.pem --cert /mnt/{name}.pem --key /mnt/{name}.key -b /root/{name}.jar "
            f"-c /root/{name}.jar -w '\\n%{{http_code}}' " + " ".join(arguments))

    def require_answer(self, status, name, path, contains=""):
        answer = self.ask(name, ADDRESS + path)
        self.trial.require(answer.endswith(status) and contains in answer, f"{name}, {path}: {answer}")

    def sign_in(self):
        """Both people sign in, and see a page."""
        for name in ["ada", "bob"]:
            answer = self.ask(name, f"-H 'Origin: {ADDRESS}' -X POST {ADDRESS}/sign-in/certificate")
            self.trial.require(answer.endswith("303"), answer)
            self.require_answer("200", name, self.page, f"CN={name}")
        self.trial.require("CN=ada" in self.trial.sh(f"journalctl --no-pager -u {self.unit}"),
                           "the journal has no sign-in")

    def take_role_away(self):
        """After a reload without bob's role, bob has no session any more, and ada has."""
        self.trial.sh(f"sed -i '/CN=bob/d' {self.trial.configuration} && systemctl reload {self.unit}")
        await_true(lambda: self.ask("bob", ADDRESS + self.page).endswith("401"), 60, "bob still has a session")
        self.require_answer("200", "ada", self.page)

    def hang(self):
        """The process stops, and the watchdog restarts it."""
        trial = self.trial
        trial.sh(f"kill -STOP $(systemctl show --property=MainPID --value {self.unit})")
        await_true(lambda: trial.processes() != self.processes and trial.show("ActiveState", self.unit) == "active",
                   240, "the watchdog does not restart the console")

    def stop(self):
        trial = self.trial
        trial.sh(f"systemctl --quiet disable --now {self.unit}", within=200)
        trial.require(trial.show("Result", self.unit) == "success",
                      "the result of the unit is " + trial.show("Result", self.unit))
        trial.repair_configuration()
        trial.sh(f"rm -r {self.folder}")
        trial.require_serving()
