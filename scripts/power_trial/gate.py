"""The gate in front of an echo server: devices register, get in and are revoked."""
from phones import Phone, opening
from power_trial.trial import Trial
from virtual_machine import await_true, configure, configure_postgresql


class GateTrial(Trial):
    folders = ["sallyport"]

    def __init__(self, arguments, disk, device, work):
        super().__init__(arguments, disk, device, work)
        self.phones, self.counts = [], {"registered": 0, "admitted": 0, "revoked": 0}

    def configure(self):
        configure(self.machine)
        if self.arguments.postgresql:
            configure_postgresql(self.machine, ["sallyport"])
            self.machine.sh("runuser -u sallyport -- sallyport store migrate")
        self.machine.sh("systemctl --quiet enable --now sallyport.socket sallyport.service", within=300)

    def require_serving(self):
        await_true(lambda: self.machine.send("systemctl is-active sallyport.service")[1] == "active", 300,
                   lambda: "the gate does not start: " + self.machine.send("journalctl -u sallyport -n 20 -o cat")[1])

    def totals(self):
        return dict(self.counts)

    def act(self, number, chance):
        own = [phone for phone in list(self.phones) if phone.number % 2 == number]
        candidates = [phone for phone in own if phone.key and not phone.may_be_revoked]
        if not candidates or chance.random() < 0.35:
            phone = Phone(len(own) * 2 + number, self.device, self.work)
            self.phones.append(phone)
            phone.register()
            self.counts["registered"] += 1
        elif number == 0 and len(candidates) > 2 and chance.random() < 0.2:
            phone = chance.choice(candidates)
            phone.may_be_revoked = True
            self.machine.sh(f"sallyport keys revoke -- '{phone.key}'")
            phone.is_revoked = True
            self.counts["revoked"] += 1
        else:
            chance.choice(candidates).get_in()
            self.counts["admitted"] += 1

    def check(self):
        lost = []
        for phone in self.phones:
            for proof in phone.accepted:
                if opening(self.device, proof) == 101:
                    lost.append(f"phone {phone.number}: a proof was accepted twice")
            phone.accepted = phone.accepted[-3:]
            if not phone.key or phone.may_be_revoked and not phone.is_revoked:
                continue
            status = opening(self.device, phone.proof())
            if phone.is_revoked and status == 101:
                lost.append(f"phone {phone.number}: its revocation was lost")
            if not phone.is_revoked and status != 101:
                lost.append(f"phone {phone.number}: registered, and refused with {status}")
        return lost
