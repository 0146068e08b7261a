"""scripts/fleet --measure: the constants of the model, and runs of 1, 2 and 4 gates that it has to predict.

Everything is bytes, counts or CPU time of processes, which other work on the machine changes little.
"""

import datetime
import os
import statistics
import subprocess
import sys
import time

from processes import Processes, free_port, raise_descriptor_limit
from report import machine
from gates import Forwarder, Load, Site, bytes_of_kernel_socket, settled_memory
from stores import Postgres, Visitor

GATES, CONNECTIONS = (1, 2, 4), (4, 16, 64)
# The statements of Sources/Gate/PostgresStore, as far as they are run here without a gate.
LOOKUP = """\
SELECT k.*, a.evidence AS android, e.metric AS risk, e.measured_at AS risk_at, e.due_at IS NULL AS risk_outdated
FROM (
    SELECT * FROM attested_keys AS k WHERE k.key_id >= sha256(('key ' || CAST(:number AS text))::bytea)
    ORDER BY k.key_id LIMIT 1
  ) AS k
  LEFT JOIN LATERAL (SELECT evidence FROM android_keys WHERE key_id = k.key_id OFFSET 0) AS a ON TRUE
  LEFT JOIN LATERAL (
    SELECT metric, measured_at, due_at FROM receipt_exchanges WHERE key_id = k.key_id OFFSET 0) AS e ON TRUE;
"""
FORGET = """\
BEGIN; UPDATE nonce_watermark SET issued_at = (SELECT MAX(issued_at) FROM spent_nonces) WHERE id = 1; COMMIT;
"""
DELETE = """\
DELETE FROM spent_nonces WHERE nonce IN (
  SELECT nonce FROM spent_nonces WHERE issued_at <= (SELECT issued_at FROM nonce_watermark WHERE id = 1)
  ORDER BY issued_at LIMIT 5000);
"""
REVOKE = """\
BEGIN;
UPDATE attested_keys SET revoked_at = 1
WHERE key_id = (SELECT key_id FROM attested_keys WHERE revoked_at IS NULL LIMIT 1);
WITH next AS (UPDATE change_position SET position = position + 1 WHERE id = 1 RETURNING position)
INSERT INTO changes (position, key_id) SELECT position, (SELECT key_id FROM attested_keys LIMIT 1) FROM next;
SELECT pg_notify('sallyport_changes', '');
DELETE FROM changes WHERE position <= (SELECT position FROM change_position WHERE id = 1) - 10000; COMMIT;
"""


def say(text):
    print(f"fleet: {text}", file=sys.stderr, flush=True)


class Measurement:
    def __init__(self, folder, binaries, registrations, rounds, stored=100_000, filled=500_000):
        """Registers devices, adds rows up to `stored` keys, and makes a second table of `filled` keys."""
        self.folder, self.binaries, self.rounds = folder, binaries, rounds
        self.registrations, self.stored, self.filled = registrations, stored, filled
        self.constants, self.runs = {}, []
        self.note("gate.loops", 1.1, "times the CPU with several event loops",
                  "Speed.md: scripts/bench --only loops --only loops-connect, 0.98 to 1.10")

    def note(self, name, value, unit, how):
        self.constants[name] = {"value": float(f"{value:.4g}"), "unit": unit, "measured": how}
        say(f"{name} = {value:.4g} {unit}")

    def run(self):
        raise_descriptor_limit()
        for step in (self.with_statements, self.with_devices, self.with_many_keys):
            folder = self.folder / step.__name__
            folder.mkdir(mode=0o711)
            with Processes() as processes:
                settings = ("shared_preload_libraries=pg_stat_statements",) if step == self.with_statements else ()
                with Site(processes, folder, self.binaries, settings) as site:
                    step(site)
        return {"date": datetime.date.today().isoformat(), "machine": machine(), "constants": self.constants,
                "runs": self.runs}

    # MARK: Statements

    def with_statements(self, site):
        """Counts statements, on a server of its own: the counting costs CPU time."""
        site.server.sql("CREATE EXTENSION pg_stat_statements")
        gate = site.gate()
        time.sleep(2)
        site.server.sql("SELECT pg_stat_statements_reset()")
        time.sleep(20)
        calls = int(site.server.sql(
            "SELECT sum(calls) FROM pg_stat_statements WHERE query NOT LIKE '%pg_stat_statements%'"))
        self.note("store.statements_idle", calls / 20, "statements/s", "pg_stat_statements of an idle gate, 20 s")
        load = Load(site, gate.port, "--connect", "-c", 1, "-d", "4s")
        site.server.sql("SELECT pg_stat_statements_reset()")
        load.begin()
        count = load.report()["count"]
        rows = site.server.sql("SELECT calls FROM pg_stat_statements").split()
        # The statements of an admission are those that ran as often as there were admissions.
        own = sum(int(calls) for calls in rows if int(calls) > count * 0.9)
        self.note("store.statements_admission", own / count + 2, "statements, alone in its transaction",
                  "pg_stat_statements, attest load --connect -c 1, and BEGIN and COMMIT, which it does not count")
        load.end()

    # MARK: Devices

    def with_devices(self, site):
        gates = [site.gate() for _ in range(max(GATES))]
        time.sleep(3)
        self.measure_idle_gates(site, gates)
        self.measure_registrations(site, gates[0])
        self.measure_admissions(site, gates)
        self.measure_forgetting(site)
        self.measure_revocations(site, gates)
        for gate in gates:
            gate.end()
        self.measure_network(site)
        self.measure_sockets(site)
        self.measure_messages(site)

    def measure_idle_gates(self, site, gates, seconds=20):
        before = site.server.cpu(), sum(gate.cpu for gate in gates)
        time.sleep(seconds)
        self.note("postgres.cpu_idle_gate", (site.server.cpu() - before[0]) / seconds / len(gates) * 1e6,
                  "us/s of a gate", "4 idle gates, 20 s")
        self.note("gate.cpu_idle", (sum(gate.cpu for gate in gates) - before[1]) / seconds / len(gates) * 1e6, "us/s",
                  "4 idle gates, 20 s")
        self.note("gate.memory", statistics.median(settled_memory(gate) for gate in gates), "bytes",
                  "Pss of an idle gate")

    def measure_registrations(self, site, gate):
        site.server.sql("CHECKPOINT")
        before, start = (site.server.cpu(), gate.cpu), site.position()
        done = 0
        while done < self.registrations:
            load = Load(site, gate.port, "--register", "-c", 32, "-d", "15s")
            load.begin()
            done += load.report()["count"]
            load.end()
            say(f"{done} registrations")
        how = f"attest load --register -c 32, {done} registrations"
        written = site.written(start, site.position())
        self.note("gate.cpu_registration", (gate.cpu - before[1]) / done * 1e6, "us", how)
        self.note("postgres.cpu_registration", (site.server.cpu() - before[0]) / done * 1e6, "us", how)
        self.note("postgres.wal_registration", written / done, "bytes", how)
        self.add_keys(site, done)
        how = f"{how}, and {self.stored - done} rows more by the same statements" if self.stored > done else how
        site.server.sql("VACUUM ANALYZE")
        tables = {"key": "attested_keys", "simulated_receipt": "receipts", "exchange": "receipt_exchanges"}
        for name, table in tables.items():
            functions = ("pg_relation_size", "pg_indexes_size", "pg_total_relation_size")
            heap, indexes, total = map(int, site.server.sql(
                "SELECT " + ", ".join(f"{function}('{table}')" for function in functions)).split("|"))
            count = int(site.server.sql(f"SELECT count(*) FROM {table}"))
            other = (total - heap - indexes) / count
            note = f"{how}: heap {heap / count:.0f}, indexes {indexes / count:.0f}, other {other:.0f}"
            self.note(f"postgres.bytes_{name}", total / count, "bytes", note)
            if name == "key":
                self.note("postgres.bytes_key_heap", heap / count, "bytes", note)
                index = int(site.server.sql("SELECT pg_relation_size('attested_keys_pkey')"))
                self.note("postgres.bytes_key_index", index / count, "bytes", f"{how}: attested_keys_pkey")
        self.measure_receipts(site)

    def add_keys(self, site, done):
        """Adds rows in random order of their keys, as registrations do, without the CPU time of attestations."""
        if done >= self.stored:
            return
        site.server.sql(f"""
            CREATE TEMPORARY TABLE added AS
              SELECT sha256(('added ' || n)::bytea) AS key FROM generate_series({done + 1}, {self.stored}) AS n;
            INSERT INTO attested_keys SELECT key, left(encode(key, 'hex'), 43), public_key, app_id, environment, category,
              bundle_version, 0, -1, sha256(key), sha256(sha256(key)), registered_at
            FROM added, (SELECT * FROM attested_keys LIMIT 1) AS one;
            INSERT INTO receipts SELECT key, receipt FROM added, (SELECT receipt FROM receipts LIMIT 1) AS one""")

    def measure_receipts(self, site, count=10_000):
        """Apple's receipts have about 4,000 bytes, which are stored outside of the row."""
        site.server.sql(
            "CREATE TABLE real_receipts (LIKE receipts INCLUDING ALL); "
            "INSERT INTO real_receipts SELECT sha256(n::text::bytea), "
            "(SELECT string_agg(sha512((n || ' ' || part)::bytea), '') FROM generate_series(1, 62) AS part) "
            f"FROM generate_series(1, {count}) AS n")
        size = int(site.server.sql("SELECT pg_total_relation_size('real_receipts')"))
        self.note("postgres.bytes_receipt", size / count, "bytes",
                  f"{count} random receipts of 3,968 bytes, with index and TOAST")
        site.server.sql("DROP TABLE real_receipts")

    def measure_admissions(self, site, gates):
        """The runs: the same devices in all, at 1, 2 and 4 gates in turn."""
        loads = {(used, connections): [Load(site, gate.port, "--connect", "-c", connections // used, "-d", "2s")
                                       for gate in gates[:used]] for used in GATES for connections in CONNECTIONS}
        # With an empty table, plans would read it from its beginning: a gate at work has nonces of the last minute.
        site.server.sql("INSERT INTO spent_nonces SELECT sha256(('nonce ' || n)::bytea), EXTRACT(EPOCH FROM now()) * 1000 "
                        "FROM generate_series(1, 50000) AS n")
        for statement in ("VACUUM ANALYZE", "CHECKPOINT"):
            site.server.sql(statement)
        samples = {run: [] for run in loads}
        for number in range(self.rounds + 1):
            for (used, connections), group in loads.items():
                start = site.position()
                before = site.server.cpu(), sum(gate.cpu for gate in gates[:used])
                for load in group:
                    load.begin()
                reports = [load.report() for load in group]
                cpu = site.server.cpu() - before[0], sum(gate.cpu for gate in gates[:used]) - before[1]
                end = site.position()
                records, written = site.wal(start, end), site.written(start, end)
                count = sum(report["count"] for report in reports)
                images = sum(entry[3] for entry in records.values())
                # The first round fills caches.
                if number:
                    samples[used, connections].append({
                        "per_second": sum(report["perSecond"] for report in reports), "admissions": count,
                        "gate_us": cpu[1] / count * 1e6, "postgres_us": cpu[0] / count * 1e6,
                        "commits": records["Transaction/COMMIT"][0] / count, "wal": (written - images) / count})
            say(f"admissions, round {number}")
        for (used, connections), list_ in samples.items():
            run = {name: float(f"{statistics.median(sample[name] for sample in list_):.4g}") for name in list_[0]}
            self.runs.append({"gates": used, "running": len(gates), "connections": connections, "rounds": len(list_), **run})
            say(str(self.runs[-1]))
        for group in loads.values():
            for load in group:
                load.end()

    def measure_forgetting(self, site):
        """What maintenance does with each nonce: delete it, and vacuum its table."""
        count = int(site.server.sql("SELECT count(*) FROM spent_nonces"))
        size = int(site.server.sql("SELECT pg_total_relation_size('spent_nonces')"))
        how = f"{count} nonces: watermark, DELETE in portions of 5000, VACUUM"
        self.note("postgres.bytes_nonce", size / count, "bytes",
                  f"{count} nonces of attest load, table and both indexes")
        site.server.sql("CHECKPOINT")
        # First touches of pages are counted apart, by `pages` of the model.
        before, start = site.server.cpu(), site.position()
        site.server.sql(FORGET)
        for _ in range(count // 5000 + 1):
            site.server.sql(DELETE)
        site.server.sql("VACUUM spent_nonces")
        used, end = site.server.cpu() - before, site.position()
        records, written = site.wal(start, end), site.written(start, end)
        images = sum(entry[3] for entry in records.values())
        self.note("postgres.wal_forgotten_nonce", (written - images) / count, "bytes without page images", how)
        self.note("postgres.cpu_forgotten_nonce", used / count * 1e6, "us", how)

    def measure_revocations(self, site, gates, count=500):
        before, start = (site.server.cpu(), sum(gate.cpu for gate in gates)), site.position()
        for _ in range(count // 50):
            site.server.sql(REVOKE * 50)
        time.sleep(1)
        how = f"{count} revocations, 4 gates that hear them"
        written = site.written(start, site.position())
        self.note("postgres.wal_revocation", written / count, "bytes", how)
        each = count * len(gates)
        self.note("postgres.cpu_revocation", (site.server.cpu() - before[0]) / each * 1e6, "us of each gate", how)
        self.note("gate.cpu_revocation", (sum(gate.cpu for gate in gates) - before[1]) / each * 1e6, "us", how)

    def measure_network(self, site, count=300):
        folder = site.folder / "forwarded"
        folder.mkdir(mode=0o711)
        store = Forwarder(str(folder / ".s.PGSQL.5432"), str(site.server.folder / ".s.PGSQL.5432"))
        gate = site.gate(store=site.store(folder))
        port = free_port()
        clients = Forwarder(("127.0.0.1", port), ("127.0.0.1", gate.port))
        load = Load(site, port, "--connect", "-c", 4, "-d", "4s")
        before = clients.up, clients.down, store.up, store.down
        load.begin()
        count = load.report()["count"]
        after = clients.up, clients.down, store.up, store.down
        load.end()
        how = f"{count} connections through a forwarder, payload of TCP"
        for name, index in (("client_in", 0), ("client_out", 1), ("store_out", 2), ("store_in", 3)):
            self.note(f"network.{name}", (after[index] - before[index]) / count, "bytes of an admission", how)
        clients.close()
        store.close()
        gate.end()

    def measure_sockets(self, site, count=1000):
        """Idle sockets that are pinged every second."""
        gate = site.gate(session="ping: 1s, idle_timeout: 90s")
        port = free_port()
        clients = Forwarder(("127.0.0.1", port), ("127.0.0.1", gate.port))
        few = Load(site, port, "--idle", "-c", 50)
        before = clients.up, clients.down
        time.sleep(5)
        how = "50 idle sockets, pinged every second, for 5 s, payload of TCP"
        self.note("network.ping_out", (clients.down - before[1]) / 250, "bytes", how)
        self.note("network.ping_in", (clients.up - before[0]) / 250, "bytes", how)
        few.end()
        clients.close()
        before = settled_memory(gate)
        load = Load(site, gate.port, "--idle", "-c", count)
        time.sleep(1)
        began = gate.cpu
        time.sleep(10)
        self.note("gate.cpu_ping", (gate.cpu - began) / count / 10 * 1e6, "us of a ping and its answer",
                  f"{count} idle sockets, pinged every second, for 10 s")
        self.note("gate.memory_socket", (settled_memory(gate) - before) / count, "bytes", f"Pss, {count} idle sockets")
        self.note("kernel.memory_socket", 2 * bytes_of_kernel_socket(), "bytes of a session",
                  "/proc/slabinfo: objects of two idle TCP sockets")
        load.end()
        gate.end()

    def measure_messages(self, site):
        gate = site.gate()
        load = Load(site, gate.port, "--rate", 2000, "-c", 500, "-d", "5s")
        samples = []
        for _ in range(3):
            before = gate.cpu
            load.begin()
            report = load.report()
            samples.append((gate.cpu - before) / report["count"] * 1e6)
        self.note("gate.cpu_message", statistics.median(samples), "us there and back",
                  "attest load --rate 2000 -c 500, 64 bytes, three runs of 5 s")
        load.end()
        gate.end()

    # MARK: Many keys

    def with_many_keys(self, site, uses=20_000):
        """Page images and look-ups, at a table whose pages are rarely written twice between two checkpoints."""
        store = Postgres(site.server, self.binaries, self.filled)
        schema = f"SET search_path = {store.schema}; "
        heap = int(site.server.sql(f"SELECT pg_relation_size('{store.schema}.attested_keys')"))
        visitor = Visitor(site.processes, site.folder, self.binaries, store, self.filled, uses)
        visitor.round()
        site.server.sql("CHECKPOINT")
        start = site.position()
        visitor.round()
        end = site.position()
        records, written = site.wal(start, end), site.written(start, end)
        images = {kind: entry for kind, entry in records.items() if entry[2]}
        keys = sum(entry[2] for kind, entry in images.items() if kind.startswith("Heap"))
        size = sum(entry[3] for kind, entry in images.items() if kind.startswith("Heap"))
        how = f"gate-bench store, {uses} admissions of {self.filled} keys after a checkpoint"
        self.note("postgres.image", size / keys, "bytes of a page image of keys", how)
        self.runs.append({"pages": heap // 8192, "keys": self.filled, "uses": uses, "images": keys,
                          "wal": written / uses, "image_bytes": sum(entry[3] for entry in images.values()) / uses})
        say(str(self.runs[-1]))
        visitor.process.end()
        script = site.folder / "lookup.sql"
        script.write_text(f"\\set number random(0, {self.filled - 1})\n{LOOKUP}")
        before = site.server.cpu()
        command = [site.server.tools / "pgbench", "-n", "-M", "prepared", "-f", script, "-t", "30000", "-h",
                   site.server.folder, "-U", "postgres", "postgres"]
        subprocess.run([str(word) for word in command], check=True, capture_output=True,
                       env={**os.environ, "PGOPTIONS": f"-csearch_path={store.schema}"})
        self.note("postgres.cpu_lookup", (site.server.cpu() - before) / 30_000 * 1e6, "us",
                  f"pgbench -M prepared, 30000 look-ups of {self.filled} keys")
