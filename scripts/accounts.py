"""Accounts of the MFA backend with simulated devices outside of what is tested, and what was acknowledged to them."""
import base64
import hmac
import itertools
import json
import struct
import time

from virtual_machine import Failed, run

# The exit status of attest for a request that was refused, which does not depend on the store.
REFUSED = "exit status 77"


class Account:
    """An account with one device, an authenticator and backup codes."""

    def __init__(self, number, device, work):
        self.name, self.device = f"user{number}", device
        self.environment = {**device.environment, "XDG_DATA_HOME": str(work / f"account{number}")}
        self.is_enrolled = self.has_factor = False
        # If a request got no answer, both outcomes are possible: `may_be_…` is true and `is_…` is not.
        self.may_be_removed = self.is_removed = False
        self.may_be_trusted = self.is_trusted = False
        self.may_be_locked = self.is_locked = False
        # Backup codes: those that were not sent, those that were sent, and those whose use was acknowledged.
        self.codes, self.sent, self.spent = [], [], []
        # Refused codes since the last accepted one: after five the backend locks the account.
        self.refusals = 0

    def attest(self, command, *arguments):
        words = command.split(" ")
        return run(*self.device.program("attest"), *words, self.device.url, "--authority", self.device.authority,
                   *arguments, env=self.environment)

    def ask(self, command, *arguments):
        """The answer in JSON. Remarks of the program may precede it."""
        return json.loads(self.attest(command, *arguments, "--json").strip().splitlines()[-1])

    def enroll(self):
        self.attest("enroll", "--user", self.name, "--phone", "+15550100", "--answers", "approve,approve")
        self.is_enrolled = True

    def set_up_factor(self):
        self.sign_in()
        made = self.ask("factor setup")
        self.attest("factor confirm", one_time_code(made["secret"]))
        self.codes, self.has_factor = made["backup_codes"], True

    def sign_in(self):
        """Signs in by the device's key, and returns the scope of the session: `mfa` if the second factor is missing."""
        return self.ask("signin", "--answers", "approve")["scope"]

    def signs_in(self):
        """Whether the backend accepts a sign-in. A failure without a refusal is none of its answers."""
        try:
            self.sign_in()
            return True
        except Failed as error:
            if REFUSED not in str(error):
                raise
            return False

    def token(self):
        """Signs in by the device's key, and returns the access token."""
        return self.attest("signin", "--answers", "approve", "--token").strip().splitlines()[-1]

    def spend(self, trust=False):
        """Uses a backup code in a session without second factor. If wanted, the device is trusted from now on."""
        code = self.codes.pop()
        self.sent.append(code)
        self.may_be_trusted = self.may_be_trusted or trust
        self.attest("verify", code, "--kind", "backup", *(["--trust"] if trust else []))
        self.spent.append(code)
        self.is_trusted = self.is_trusted or trust
        self.refusals = 0

    def accepts_again(self, code):
        """Whether the backend accepts a code that was used. A failure without a refusal is none of its answers."""
        self.refusals += 1
        try:
            self.attest("verify", code, "--kind", "backup")
            return True
        except Failed as error:
            if REFUSED not in str(error):
                raise
            return False

    def revoke_trust(self):
        self.is_trusted = False
        self.attest("trust revoke", "--all")
        self.may_be_trusted = False

    def remove(self):
        self.may_be_removed = True
        self.attest("unenroll")
        self.is_removed = True

    def remaining_codes(self):
        return self.ask("factor status")["backup_codes_remaining"]


def one_time_code(secret):
    """The code of RFC 6238 that an authenticator shows now."""
    key = base64.b32decode(secret + "=" * (-len(secret) % 8))
    digest = hmac.digest(key, struct.pack(">Q", int(time.time()) // 30), "sha1")
    start = digest[-1] & 15
    return f"{(struct.unpack('>I', digest[start:start + 4])[0] & 0x7fffffff) % 10**6:06d}"


class Accounts:
    """The accounts of a trial, which use the backend until something breaks.

    `administer` runs an administrative command of the backend, and returns what it prints. With `locks`, accounts are
    locked too. `numbers` are those of the accounts; their names and folders have them."""

    def __init__(self, device, work, chance, administer, locks=False, numbers=None):
        self.device, self.work, self.chance, self.administer, self.locks = device, work, chance, administer, locks
        self.accounts, self.numbers, self.found = [], numbers or itertools.count(), []
        # Older accounts, of which a check reads only the number of their devices.
        self.past = []
        self.totals = {"enrolled": 0, "codes spent": 0, "trusts revoked": 0, "removed": 0}
        if locks:
            self.totals["locked"] = 0

    def act(self):
        """Does one thing with an account."""
        usable = [one for one in self.accounts if one.has_factor and not one.may_be_removed and not one.may_be_locked]
        if len(usable) < 2 or self.chance.random() < 0.15:
            self.make()
            return
        account = self.chance.choice(usable)
        scope = account.sign_in()
        if scope == "full" and not account.may_be_trusted:
            self.found.append(f"{account.name}: signed in without the second factor")
        elif self.locks and len(usable) > 2 and self.chance.random() < 0.15:
            account.may_be_locked = True
            self.administer("lock", account.name)
            account.is_locked = True
            self.totals["locked"] += 1
        elif len(usable) > 2 and account.codes and self.chance.random() < 0.15:
            if scope == "mfa":
                account.spend()
                self.totals["codes spent"] += 1
            account.remove()
            self.totals["removed"] += 1
        elif scope == "mfa" and account.spent and account.codes and account.refusals < 2 and self.chance.random() < 0.4:
            if account.accepts_again(self.chance.choice(account.spent)):
                self.found.append(f"{account.name}: a used backup code was accepted")
        elif scope == "mfa" and len(account.codes) > 3:
            account.spend(trust=self.chance.random() < 0.5)
            self.totals["codes spent"] += 1
        elif scope == "full":
            account.revoke_trust()
            self.totals["trusts revoked"] += 1
            if account.sign_in() != "mfa":
                self.found.append(f"{account.name}: a revoked trust replaced the second factor")

    def make(self):
        account = Account(next(self.numbers), self.device, self.work)
        account.enroll()
        self.accounts.append(account)
        self.totals["enrolled"] += 1
        account.set_up_factor()

    def check(self):
        """What was acknowledged and does not hold."""
        lost, self.found = self.found, []
        lines = [line for line in self.administer("users", "--json").splitlines() if line.startswith("{")]
        devices = {one["username"]: one["devices"] for one in map(json.loads, lines)}
        for account in self.past + self.accounts:
            if account.is_removed and devices.get(account.name):
                lost.append(f"{account.name}: its device was removed, and is enrolled")
            if account.is_enrolled and not account.may_be_removed and not devices.get(account.name):
                lost.append(f"{account.name}: its device was enrolled, and is missing")
        for account in self.accounts:
            try:
                if account.is_locked and account.signs_in():
                    lost.append(f"{account.name}: was locked, and signs in")
                if account.is_enrolled and not account.may_be_removed and not account.may_be_locked:
                    lost += self.judge(account)
            except Failed as error:
                lost.append(f"{account.name}: {error}")
        self.past += self.accounts[:-4]
        self.accounts = self.accounts[-4:]
        return lost

    def judge(self, account):
        """What was acknowledged to an enrolled account and does not hold."""
        lost = []
        scope = account.sign_in()
        if not account.has_factor:
            return []
        if account.is_trusted and scope != "full":
            lost.append(f"{account.name}: its device is not trusted any more")
        if not account.may_be_trusted and scope != "mfa":
            lost.append(f"{account.name}: its device is trusted again, or its second factor was lost")
        if scope == "full":
            account.revoke_trust()
            self.totals["trusts revoked"] += 1
            scope = account.sign_in()
        if scope != "mfa":
            return lost + [f"{account.name}: signs in without the second factor"]
        # attest sends no backup code to an account that has none left.
        if account.codes:
            if account.spent and account.accepts_again(account.spent[-1]):
                return lost + [f"{account.name}: a used backup code was accepted"]
            account.spend()
            self.totals["codes spent"] += 1
        remaining, made = account.remaining_codes(), len(account.codes) + len(account.sent)
        if not made - len(account.sent) <= remaining <= made - len(account.spent):
            lost.append(
                f"{account.name}: {remaining} of {made} backup codes remain, and {len(account.spent)} are spent")
        return lost
