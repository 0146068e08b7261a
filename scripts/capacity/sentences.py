"""The plan of a fleet in sentences."""


def count(value, digits=2):
    """`1,234` with about so many digits."""
    if value >= 10 ** digits or value == int(value):
        scale = 10 ** max(0, len(str(int(value))) - digits - 1)
        return f"{round(value / scale) * scale:,}"
    return f"{value:.{digits}g}"


def size(value):
    for unit, scale in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if value >= scale:
            return f"{value / scale:.3g} {unit}"
    return f"{value:.0f} B"


def percent(value):
    return f"{value * 100:.2g} %" if value < 0.1 else f"{value * 100:.0f} %"


def several(number, word):
    return f"{number} {word}{'' if number == 1 else 's'}"


def title(load):
    return (f"{count(load.devices)} devices, {count(load.sockets)} sockets, {several(load.regions, 'region')}, "
            f"{several(load.databases, 'database')}, {count(load.admissions_per_day)} admissions a day")


def rows(model, load):
    """Yields (subject, sentence)."""
    plan = model.plan(load)
    uses = model.uses(load, plan)
    factor, first = model.limit(load)
    yield "Admissions", (
        f"{count(plan['admissions'])} a second in the mean, {count(plan['admissions_peak'])} in the busiest second. "
        + (f"A lost region, whose sockets come back within {load.storm_minutes:g} minutes, adds "
           f"{count(plan['admissions_storm'])} a second" if load.regions > 1 else "There is no other region"))
    lost = "one region may be lost" if load.regions > 1 else "one of them may be lost"
    yield "Gates", (
        f"{plan['gates']} of {load.gate_cores:g} cores and {load.gate_memory_gib:g} GiB, so that {lost}. Then each has "
        f"{count(plan['gate_sockets'])} sockets, which take {size(plan['gate_memory'])}. "
        + ", ".join(f"{name} {percent(use)}" for name, use in plan["gate_use"].items()))
    yield "First in a gate", (
        f"{plan['gate_first']}. To one address of an upstream Linux has 28,232 ports, so a route needs "
        f"{plan['upstream_addresses']} address{'es' if plan['upstream_addresses'] > 1 else ''}, and "
        f"`limits.global_sessions` must be above {count(load.sockets)}; the default is 20,000")
    yield "Database, size", (
        f"{size(plan['db_bytes'])}, {count(model.device_bytes())} bytes of a device. Admissions read "
        f"{size(plan['db_hot'])} of it, which should fit into memory. Spent nonces: {count(plan['nonces'])} rows, {size(plan['nonce_bytes'])}")
    yield "Database, CPU", (
        f"{plan['db_cores']:.2g} cores in the busiest second: {plan['db_cpu_us']:.0f} us of an admission, "
        f"with {plan['batch']:.2f} admissions in a transaction, and {count(plan['statements'])} statements a second")
    yield "Database, log (WAL)", (
        f"{size(plan['wal_admission'])} of an admission, {size(plan['wal_peak'])}/s in the busiest second, "
        f"{size(plan['wal_day'])} a day. `max_wal_size` must be {size(plan['max_wal_size'])} for a checkpoint every "
        f"{load.checkpoint_minutes:g} minutes; with less, checkpoints come sooner and the log grows")
    yield "Database, vacuum", (
        f"{count(load.admissions_per_day)} nonces a day are deleted and vacuumed. Every {plan['freeze_days']:.2g} days "
        f"all tables are read to freeze transaction numbers, {size(plan['db_bytes'])}")
    away = load.databases == 1 and load.regions > 1
    yield "Waiting", (
        f"an admission waits {plan['wait_ms']:.0f} ms for the store"
        + (f", {plan['wait_away_ms']:.0f} ms in another region. There a gate registers at most "
           f"{plan['registrations_of_gate']:.1f} devices a second, one after another" if away else
           f". A gate registers at most {count(plan['registrations_of_gate'])} devices a second, one after another"))
    yield "Network", (
        f"in the busiest second {size(plan['client_in'])}/s from clients and {size(plan['client_out'])}/s to them, "
        f"{size(plan['store_network'])}/s between gates and database, {size(plan['standby_network'])}/s to "
        f"{several(load.standbys, 'standby')}, without the headers of TCP/IP")
    yield "First in the database", (
        ", ".join(f"{name} {percent(use)}" for name, use in sorted(uses.items(), key=lambda entry: -entry[1])[:5]))
    yield "Second database", (
        f"above {load.utilization:.0%} of one part: {first}, at {factor:.2g} times this fleet, that is "
        f"{count(load.devices * factor)} devices with {count(plan['admissions_peak'] * factor)} admissions in the busiest second")
    yield "Cost of a month", (
        f"{count(plan['cost'], 3)}: gates {count(plan['cost_gates'], 3)}, databases {count(plan['cost_databases'], 3)}, "
        f"their disks {count(plan['cost_disk'], 3)}, traffic to clients {count(plan['cost_egress'], 3)}, "
        "by the prices of the options")


def text(model, load):
    lines = [title(load), ""]
    for subject, sentence in rows(model, load):
        lines += [f"{subject}: {sentence}."]
    return "\n".join(lines) + "\n"


def markdown(model, load):
    lines = ["| subject | " + title(load) + " |", "|---|---|"]
    lines += [f"| {subject} | {sentence} |" for subject, sentence in rows(model, load)]
    return "\n".join(lines) + "\n"


def runs_markdown(found):
    """The table of the runs: what was measured, and by how much the model is off."""
    lines = ["| gates | devices at a time | admissions/s | CPU of the gates | of PostgreSQL | log | transactions |",
             "|---|---|---|---|---|---|---|"]
    units = {"gate CPU": "us", "PostgreSQL CPU": "us", "log": "B", "transactions": ""}
    for run, parts in found:
        cells = []
        for name, (predicted, measured) in parts.items():
            amount = f"{measured:.2f}" if name == "transactions" else f"{measured:,.0f} {units[name]}"
            cells.append(f"{amount} ({(predicted / measured - 1) * 100:+.0f} %)")
        lines.append(f"| {run['gates']} | {run['connections']} | {run['per_second']:,.0f} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def constants_markdown(document):
    lines = ["| constant | value | measured by |", "|---|---|---|"]
    for name, entry in sorted(document["constants"].items()):
        lines.append(f"| `{name}` | {count(entry['value'], 3)} {entry['unit']} | {entry['measured']} |")
    return "\n".join(lines) + "\n"
