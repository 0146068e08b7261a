"""The MFA backend and its gate: accounts enrol, sign in, use backup codes, trust devices and remove them, while an
operator locks accounts, backs the database up and rotates the key-encryption key."""
import itertools
import json
import random
import threading

from accounts import Accounts
from power_trial.trial import Trial
from virtual_machine import Failed, await_true, configure_backend, configure_gate, configure_postgresql

FOLDER = "/var/lib/mfa"
# Runs a command as the backend's user.
OWN = f"cd {FOLDER} && runuser -u mfa -- "

# The commands of the guide, without jq.
ROTATION = """#!/bin/sh -e
umask 077
mfa-backend keys make >new.json
{ sed 's/]$/,/' new.json && sed 's/^\\[//' keys.json; } >both.json
sync
mfa-backend keys rotate --keys both.json
mv new.json keys.json
rm both.json
"""


class BackendTrial(Trial):
    folders = ["sallyport", "mfa"]
    packages = ["sallyport", "sallyport-mfa"]
    # An account needs many requests until it has something to lose.
    seconds = (20, 45)

    def __init__(self, arguments, disk, device, work):
        super().__init__(arguments, disk, device, work)
        # The accounts of each worker. The operator works with those of the first one.
        self.accounts = [
            Accounts(device, work, random.Random(f"{self.seed}-accounts{number}"), self.administer, locks=number == 0,
                     numbers=itertools.count(number, 2)) for number in range(2)]
        self.counts = {"backups": 0, "keys rotated": 0}
        # The last backup: its file, the accounts that had been enrolled before, and whether it was acknowledged.
        self.files, self.backup = itertools.count(1), None

    def configure(self):
        configure_gate(self.machine)
        configure_backend(self.machine)
        if self.arguments.postgresql:
            configure_postgresql(self.machine)
        # All devices have one address. The keys file is on the disk with the cache, like the database.
        self.machine.sh(f"""set -e
printf '%s\\n' 'limits: {{ per_ip: {{ challenges: off, registrations: off, upgrades: off }} }}' \\
  >>/etc/sallyport/sallyport.yaml
sed -i -e '/^  per_ip:/,/^  per_key:/s/^\\(    [a-z_]*\\): .*/\\1: off/' \\
  -e 's|^keys_file: .*|keys_file: {FOLDER}/keys.json|' /etc/mfa/mfa.yaml
install -d -o mfa -g mfa -m 700 {FOLDER}
mv /etc/mfa/keys.json {FOLDER}/
cat >/usr/local/bin/rotate <<'END'
{ROTATION}END
chmod 755 /usr/local/bin/rotate
runuser -u mfa -- mfa-backend check --offline
runuser -u sallyport -- sallyport check --offline""")
        self.machine.sh("systemctl --quiet enable --now mfa-backend.socket mfa-backend.service sallyport.socket "
                        "sallyport.service", within=300)
        self.require_ready()

    def require_ready(self):
        await_true(lambda: self.machine.send("sallyport status && mfa-backend status")[0] == 0, 300, lambda: (
            "not ready: " + self.machine.send("sallyport status; mfa-backend status; "
                                              "journalctl -u mfa-backend -u sallyport -n 20 -o cat")[1]))

    def require_serving(self):
        # After a rotation that was cut off, an operator uses the file with both keys.
        self.machine.sh(f"cd {FOLDER} && if [ -s both.json ]; then cp -p both.json keys.json && "
                        "systemctl restart mfa-backend.service; fi", within=200)
        self.require_ready()

    def administer(self, *words):
        return self.machine.sh(f"{OWN} mfa-backend admin {' '.join(words)}")

    def totals(self):
        first, second = (one.totals for one in self.accounts)
        return {**{name: count + second.get(name, 0) for name, count in first.items()}, **self.counts}

    # The acts.

    def act(self, number, chance):
        if number == 0 and chance.random() < 0.1:
            self.cut_soon(chance)
            self.back_up()
        elif number == 0 and chance.random() < 0.1:
            self.cut_soon(chance)
            self.rotate_keys()
        else:
            self.accounts[number].act()

    def cut_soon(self, chance):
        """Cuts the power during the next act or soon after it, in one of two cases."""
        if chance.random() < 0.5:
            timer = threading.Timer(chance.uniform(0, 6), self.is_due.set)
            timer.daemon = True
            timer.start()

    def back_up(self):
        enrolled = sum(one.totals["enrolled"] for one in self.accounts)
        name = f"backup{next(self.files)}.db"
        self.backup = (name, enrolled, False)
        self.machine.sh(f"{OWN} mfa-backend store backup {name}")
        self.backup = (name, enrolled, True)
        self.counts["backups"] += 1

    def rotate_keys(self):
        # A backup from before needs the old key.
        self.backup = None
        self.machine.sh(f"{OWN} rotate")
        self.counts["keys rotated"] += 1

    # The judgement.

    def check(self):
        lost = []
        for command in ["runuser -u sallyport -- sallyport store check", f"{OWN} mfa-backend store check"]:
            ended, output = self.machine.send(command)
            if ended != 0:
                lost.append(f"{command}: exit status {ended}\n{output}")
        lost += self.check_backup()
        for one in self.accounts:
            lost += one.check()
        return lost

    def check_backup(self):
        """Restores the last backup into another database. One that was not acknowledged is whole or absent."""
        if not self.backup:
            return []
        name, enrolled, is_acknowledged = self.backup
        self.backup = None
        if self.machine.send(f"test -e {FOLDER}/{name}")[0] != 0:
            return [f"{name} was acknowledged, and is missing"] if is_acknowledged else []
        options = f"--database sqlite:///run/restored/mfa.db --keys {FOLDER}/keys.json --json"
        ended, output = self.machine.send(f"""set -e
install -d -o mfa -g mfa -m 700 /run/restored
{OWN} mfa-backend store migrate {options} >/dev/null
{OWN} mfa-backend store restore {name} {options}
rm -r /run/restored {FOLDER}/{name}""")
        if ended != 0:
            return [f"{name} cannot be restored: exit status {ended}\n{output}"]
        try:
            restored = json.loads(output.splitlines()[-1])["accounts"]
        except (ValueError, LookupError) as error:
            raise Failed(f"the restore of {name} reports no accounts: {output}") from error
        return [] if restored >= enrolled else [f"{name} has {restored} accounts instead of {enrolled}"]
