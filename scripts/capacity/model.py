"""What a number of devices, sockets and admissions needs, computed from measured constants.

Times of CPU are microseconds, sizes are bytes, rates are per second unless a name says otherwise.
"""

import dataclasses
import math

PAGE = 8192
DAY = 86_400
MONTH_HOURS = 730
# What the code of the gate and of PostgreSQL fixes; scripts/fleet --check compares those of the gate with its sources.
LANES = 2  # connections of a gate for admissions: PostgresStore.Limits.admissionLanes
MOST_AT_ONCE = 256  # admissions of one transaction: PostgresStore.Limits.mostAtOnce
SKEW = 5  # seconds: Challenges.skew
MAINTENANCE = 30  # seconds between two runs: MaintenanceService
REGISTRATION_TRIPS = 4  # BEGIN, nonce and key, receipt, COMMIT: KeyStatements.register
REGISTRATION_PAGES = 4  # leaves of indexes by key identifier or hash that a registration writes to, each at random
DESCRIPTORS = 1_048_576  # LimitNOFILE of config/systemd/sallyport.service; a session takes two
LOCAL_PORTS = 28_232  # net.ipv4.ip_local_port_range of Linux, for each address of an upstream
FREEZE_AGE = 200_000_000  # autovacuum_freeze_max_age


@dataclasses.dataclass
class Load:
    """What clients do, and the machines that serve them. The defaults are assumptions, and options of scripts/fleet."""

    devices: float = 10e6
    sockets: float = 1e6
    regions: int = 3
    databases: int = 1
    admissions_per_day: float = 80e6
    registrations_per_day: float = 100e3
    revocations_per_day: float = 1e3
    peak: float = 3.0  # the busiest second, in those of a mean day
    storm_minutes: float = 10.0  # in which the sockets of a lost region come back
    messages_per_minute: float = 1.0  # of a socket, there and back
    message_bytes: float = 64.0
    cold: float = 1.0  # the share of admissions whose key is not in the gate's cache
    ping_seconds: float = 30.0
    challenge_ttl: float = 60.0
    commit_ms: float = 2.0  # flush and answer of a synchronous standby
    round_trip_ms: float = 40.0  # between two regions
    checkpoint_minutes: float = 15.0
    standbys: int = 2
    utilization: float = 0.6
    gate_cores: float = 8
    gate_memory_gib: float = 16
    db_cores: float = 16
    db_memory_gib: float = 64
    db_read_iops: float = 10_000
    db_wal_mib: float = 200.0  # of log that the disk and the standbys accept in a second
    price_core_hour: float = 0.04
    price_gib_hour: float = 0.005
    price_disk_gib_month: float = 0.10
    price_egress_gib: float = 0.05

    def scaled(self, factor):
        """The same fleet with `factor` times the devices, and everything that they do."""
        names = ("devices", "sockets", "admissions_per_day", "registrations_per_day", "revocations_per_day")
        return dataclasses.replace(self, **{name: getattr(self, name) * factor for name in names})


def batch(rate, cycle):
    """Returns the mean number of admissions in a transaction.

    `rate` admissions arrive in a second at one connection, by chance; a transaction takes `cycle` seconds however many
    it has. Those that arrive meanwhile form the next one. If none did, the next one to arrive goes alone: N is Poisson
    with mean rate * cycle, and a transaction has max(N, 1).
    """
    mean = rate * cycle
    return min(MOST_AT_ONCE, mean + math.exp(-mean))


def distinct(pages, touches):
    """Returns how many of `pages` are touched by `touches` of random ones."""
    if pages <= 0:
        return 0.0
    return pages * -math.expm1(-touches / pages)


class Model:
    """`constants` has the value of each constant by name."""

    def __init__(self, constants):
        self.constants = constants

    def __getitem__(self, name):
        return self.constants[name]

    # MARK: Parts

    def gate_cpu(self, commits):
        """Of an admission with its connection; `commits` is the number of transactions for each admission."""
        return self["gate.cpu_admission"] + self["gate.cpu_commit"] * commits

    def postgres_cpu(self, commits):
        return self["postgres.cpu_admission"] + self["postgres.cpu_commit"] * commits

    def postgres_wal(self, commits):
        """Without page images."""
        return self["postgres.wal_admission"] + self["postgres.wal_commit"] * commits

    def device_bytes(self):
        return self["postgres.bytes_key"] + self["postgres.bytes_receipt"] + self["postgres.bytes_exchange"]

    def hot_bytes(self, load):
        """What admissions read: keys, the index by their identifiers, and the queue of exchanges."""
        names = ("postgres.bytes_key_heap", "postgres.bytes_key_index", "postgres.bytes_exchange")
        return load.devices * sum(self[name] for name in names)

    def cycles(self, load):
        """The share of gates outside of the database's region, and the seconds of a transaction inside and outside."""
        away = (load.regions - 1) / load.regions if load.databases == 1 else 0.0
        return away, load.commit_ms / 1000, (load.commit_ms + load.round_trip_ms) / 1000

    def commits(self, load, rate, gates):
        """Returns the number of transactions for each admission, at `rate` admissions of all gates."""
        away, here, there = self.cycles(load)
        of_lane = rate / (gates * LANES * load.databases)
        return (1 - away) / batch(of_lane, here) + away / batch(of_lane, there)

    # MARK: The whole

    def plan(self, load):
        """Returns every figure of the fleet, by name."""
        found = {}
        # Each database has its share of everything, because key identifiers are hashes.
        share = 1 / load.databases
        mean = load.admissions_per_day / DAY
        storm = load.sockets / load.regions / (load.storm_minutes * 60) if load.regions > 1 else 0.0
        rate = max(mean * load.peak, storm + mean)
        registrations = load.registrations_per_day / DAY * load.peak
        found |= {"admissions": mean, "admissions_peak": rate, "admissions_storm": storm,
                  "registrations_peak": registrations}
        found |= self.gates(load, rate, registrations)
        commits = self.commits(load, rate, found["gates"])
        mean_commits = self.commits(load, mean, found["gates"])
        found |= {"batch": 1 / commits, "batch_mean": 1 / mean_commits}
        # The look-up of the key, then the admission, each a round trip.
        found["wait_ms"] = load.commit_ms
        found["wait_away_ms"] = load.commit_ms + load.round_trip_ms * (1 + load.cold)
        found |= self.database(
            load, rate * share, mean * share, registrations * share, commits, mean_commits, found["gates"])
        found |= self.serial(load, rate * share, registrations, found["gates"])
        found |= self.network(load, rate, mean, found)
        found |= self.cost(load, found)
        return found

    def gates(self, load, rate, registrations):
        # The other regions carry the sockets of a lost one; a single region has one gate more.
        regions = max(1, load.regions - 1)
        sockets, rate = load.sockets / regions, rate / regions
        messages = sockets * load.messages_per_minute / 60
        # A message is traffic: a socket is pinged only in a pause.
        pings = sockets * max(0.0, 1 / load.ping_seconds - load.messages_per_minute / 60)
        cores = (rate * self.gate_cpu(1) + messages * self["gate.cpu_message"] + pings * self["gate.cpu_ping"]
                 + registrations / regions * self["gate.cpu_registration"]) / 1e6
        # More event loops cost more for each message and connection.
        cores *= self["gate.loops"] if load.gate_cores > 1 else 1
        memory = sockets * (self["gate.memory_socket"] + self["kernel.memory_socket"])
        revocations = load.revocations_per_day / DAY * load.peak
        # What each gate has and does without a socket.
        own_cores = (self["gate.cpu_idle"] + revocations * self["gate.cpu_revocation"]) / 1e6
        own_memory = self["gate.memory"]
        by = {
            "CPU": cores / (load.gate_cores * load.utilization - own_cores),
            "memory": memory / (load.gate_memory_gib * 2**30 * load.utilization - own_memory),
            "descriptors": 2 * sockets / (DESCRIPTORS * 0.9),
        }
        first = max(by, key=by.get)
        each = max(math.ceil(by[first]), 1) + (1 if load.regions == 1 else 0)
        gates = each * load.regions
        of_gate = load.sockets / (each * regions)
        return {
            "gates": gates, "gate_first": first,
            "gate_use": {name: value / each * load.utilization for name, value in by.items()},
            "gate_cores": cores * load.regions / regions, "gate_memory": memory / each + own_memory,
            "gate_sockets": of_gate, "upstream_addresses": math.ceil(of_gate / LOCAL_PORTS),
            "pings": pings * regions, "messages": messages * regions,
        }

    def images(self, load, rate):
        """Bytes of page images in the log for each admission, at `rate` admissions of one database."""
        interval = load.checkpoint_minutes * 60
        touches = rate * interval
        keys = load.devices / load.databases * self["postgres.bytes_key_heap"] / PAGE
        nonces = self.nonces(load, rate) * self["postgres.bytes_nonce"] / PAGE
        if not touches:
            return 0.0
        return (distinct(keys, touches) * self["postgres.image"] + distinct(nonces, touches) * PAGE) / touches

    def nonces(self, load, rate):
        """Rows of spent nonces: each is kept for as long as a gate might accept it, and until the next maintenance."""
        return rate * (load.challenge_ttl + 2 * SKEW + MAINTENANCE)

    def database(self, load, rate, mean, registrations, commits, mean_commits, gates):
        per_admission = (self.postgres_cpu(commits) + load.cold * self["postgres.cpu_lookup"]
                         + self["postgres.cpu_forgotten_nonce"])
        revocations = load.revocations_per_day / DAY * load.peak / load.databases
        background = gates * (self["postgres.cpu_idle_gate"] + revocations * self["postgres.cpu_revocation"])
        cores = (rate * per_admission + registrations * self["postgres.cpu_registration"] + background) / 1e6
        devices = load.devices / load.databases
        hot = self.hot_bytes(load) / load.databases + self.nonces(load, rate) * self["postgres.bytes_nonce"]
        # A page that is not in memory: the row, and with the same chance the leaf of its index.
        missing = max(0.0, 1 - load.db_memory_gib * 2**30 * 0.75 / hot)
        reads = rate * missing * 2
        wal = {at: self.postgres_wal(share) + self.images(load, rate_) + self["postgres.wal_forgotten_nonce"]
               for at, rate_, share in (("peak", rate, commits), ("mean", mean, mean_commits))}
        registration = self["postgres.wal_registration"] + REGISTRATION_PAGES * PAGE
        wal_peak = rate * wal["peak"] + registrations * registration + revocations * self["postgres.wal_revocation"]
        wal_mean = mean * wal["mean"] + registrations / load.peak * registration
        transactions = mean * mean_commits + registrations / load.peak
        return {
            "db_cores": cores, "db_cpu_us": per_admission, "db_bytes": devices * self.device_bytes(), "db_hot": hot,
            "db_reads": reads, "wal_admission": wal["mean"], "wal_admission_peak": wal["peak"], "wal_peak": wal_peak,
            "wal_day": wal_mean * DAY, "max_wal_size": wal_peak * load.checkpoint_minutes * 60 * 1.9,
            "nonces": self.nonces(load, rate), "nonce_bytes": self.nonces(load, rate) * self["postgres.bytes_nonce"],
            "freeze_days": FREEZE_AGE / (transactions * DAY),
            "statements": rate * (1 + load.cold + (self["store.statements_admission"] - 1) * commits)
            + gates * self["store.statements_idle"],
        }

    def serial(self, load, rate, registrations, gates):
        """What one connection or one row does in turn, as a share of what it can do."""
        trips = REGISTRATION_TRIPS * (load.round_trip_ms / 1000 if load.databases == 1 and load.regions > 1 else 0.0002)
        away, here, there = self.cycles(load)
        return {
            "share_lane": rate / (gates * LANES * MOST_AT_ONCE / (there if away else here)),
            "share_registration": registrations / gates * (trips + load.commit_ms / 1000),
            "share_maintenance": rate * self["postgres.cpu_forgotten_nonce"] / 1e6,
            "share_revocation": load.revocations_per_day / DAY * load.peak / load.databases * load.commit_ms / 1000,
            "registrations_of_gate": 1 / (trips + load.commit_ms / 1000),
        }

    def uses(self, load, plan):
        """Each part of one database, and how much of it the peak uses."""
        return {
            "CPU of the database": plan["db_cores"] / load.db_cores,
            "log of the database": plan["wal_peak"] / (load.db_wal_mib * 2**20),
            "reads of the database's disk": plan["db_reads"] / load.db_read_iops,
            "memory of the database": plan["db_hot"] / (load.db_memory_gib * 2**30 * 0.75),
            "connection for registrations of a gate": plan["share_registration"],
            "connections for admissions of a gate": plan["share_lane"],
            "removal of nonces": plan["share_maintenance"],
            "row of change positions": plan["share_revocation"],
        }

    def limit(self, load):
        """Returns how many times this fleet one database carries, and the part that ends it.

        The number of gates grows with the fleet. Memory alone ends nothing: pages are then read from the disk.
        """
        def over(factor):
            scaled = load.scaled(factor)
            uses = self.uses(scaled, self.plan(scaled))
            del uses["memory of the database"]
            name = max(uses, key=uses.get)
            return uses[name] > load.utilization, name
        low, high = 0.0, 1.0
        while not over(high)[0] and high < 2**20:
            low, high = high, high * 2
        for _ in range(40):
            middle = (low + high) / 2
            low, high = (low, middle) if over(middle)[0] else (middle, high)
        return low, over(high)[1]

    def network(self, load, rate, mean, plan):
        messages, pings = plan["messages"] * load.message_bytes, plan["pings"]
        clients_in = mean * self["network.client_in"] + messages + pings * self["network.ping_in"]
        clients_out = mean * self["network.client_out"] + messages + pings * self["network.ping_out"]
        more = rate / mean if mean else 1
        return {
            "egress_day": clients_out * DAY, "client_in": clients_in * more, "client_out": clients_out * more,
            "store_network": rate * (self["network.store_in"] + self["network.store_out"]) / load.databases,
            "standby_network": plan["wal_peak"] * load.standbys,
        }

    def cost(self, load, plan):
        """Prices of a month, by the prices of `load`."""
        gates = plan["gates"] * MONTH_HOURS * (
            load.gate_cores * load.price_core_hour + load.gate_memory_gib * load.price_gib_hour)
        servers = load.databases * (1 + load.standbys)
        databases = servers * MONTH_HOURS * (
            load.db_cores * load.price_core_hour + load.db_memory_gib * load.price_gib_hour)
        disk = servers * (plan["db_bytes"] * 1.5 + plan["max_wal_size"]) / 2**30 * load.price_disk_gib_month
        egress = plan["egress_day"] * 30 / 2**30 * load.price_egress_gib
        return {"cost_gates": gates, "cost_databases": databases, "cost_disk": disk, "cost_egress": egress,
                "cost": gates + databases + disk + egress}


# MARK: Fitting

def background(constants, run):
    """Returns the CPU time of an admission that gates and PostgreSQL use without any: (gates, PostgreSQL)."""
    return (run["gates"] * constants["gate.cpu_idle"] / run["per_second"],
            run["running"] * constants["postgres.cpu_idle_gate"] / run["per_second"])


def fitted(constants, runs):
    """Returns constants from the runs of one gate: cost = a + b * commits, for CPU and log.

    The duration of a transaction, which sets how many admissions share one, comes from the same runs, for each number of
    connections.
    """
    own = [run for run in runs if run.get("gates") == 1]
    found = {}
    for name, key in (("gate.cpu", "gate_us"), ("postgres.cpu", "postgres_us"), ("postgres.wal", "wal")):
        idle = {"gate_us": 0, "postgres_us": 1}
        amounts = [run[key] - (background(constants, run)[idle[key]] if key in idle else 0) for run in own]
        base, more = line([run["commits"] for run in own], amounts)
        found[f"{name}_admission"], found[f"{name}_commit"] = base, more
    # With more connections the processors are busier, and a transaction takes longer.
    for run in own:
        found[f"store.cycle_{run['connections']}"] = cycle_of(run["per_second"] / LANES, 1 / run["commits"])
    return found


def line(xs, ys):
    """Least squares of y = a + b x."""
    mean_x, mean_y = sum(xs) / len(xs), sum(ys) / len(ys)
    spread = sum((x - mean_x) ** 2 for x in xs)
    slope = sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys)) / spread if spread else 0.0
    return mean_y - slope * mean_x, slope


def cycle_of(rate, size):
    """The inverse of `batch`: the duration of a transaction, in seconds."""
    low, high = 0.0, 10.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if batch(rate, middle) < size else (low, middle)
    return low


def predictions(model, runs):
    """Yields for each run what the model says and what was measured: (run, {name: (predicted, measured)})."""
    for run in runs:
        if "gates" not in run:
            continue
        cycle = model[f"store.cycle_{run['connections']}"]
        commits = 1 / batch(run["per_second"] / (run["gates"] * LANES), cycle)
        idle = background(model.constants, run)
        yield run, {
            "gate CPU": (model.gate_cpu(commits) + idle[0], run["gate_us"]),
            "PostgreSQL CPU": (model.postgres_cpu(commits) + idle[1], run["postgres_us"]),
            "log": (model.postgres_wal(commits), run["wal"]),
            "transactions": (commits, run["commits"]),
        }
