"""A major update: from the cluster to one of a newer PostgreSQL, by logical replication, as Cluster.md describes it."""
import shutil

from cluster_trial.nodes import DATABASES, Cluster, Release, newest_postgres
from virtual_machine import PROJECT, RELEASES, Failed, await_true, install_debian, run

# Debian 13 with its PostgreSQL and Patroni, which scripts/cluster makes.
NEWER_DEBIAN = PROJECT / ".build/cluster/trixie"
PACKAGES = ["postgresql", "patroni", "python3-etcd"]
# The ports of the new cluster, on the hosts of the old one.
MAJOR_PORT, MAJOR_CONTROL = 5433, 8009

TABLES = "SELECT quote_ident(tablename) FROM pg_tables WHERE schemaname = 'public' ORDER BY 1"


def make_newer_debian():
    """Installs it, unless an earlier run has."""
    if NEWER_DEBIAN.exists():
        return
    part = NEWER_DEBIAN.with_suffix(".part")
    shutil.rmtree(part, ignore_errors=True)
    part.parent.mkdir(parents=True, exist_ok=True)
    install_debian(part, RELEASES["13"], PACKAGES)
    part.rename(NEWER_DEBIAN)


def prepare_major(trial):
    """Starts the new cluster, which refuses writes of the gates, and copies the databases until both are equal."""
    old = trial.cluster
    make_visible(trial.work, NEWER_DEBIAN)
    release = Release(newest_postgres(NEWER_DEBIAN), NEWER_DEBIAN, "sallyport-new", MAJOR_PORT, MAJOR_CONTROL, "-new")
    new = trial.new_cluster = Cluster(trial.work, old.etcds, release)
    new.start("ALTER ROLE gate SET default_transaction_read_only = on")
    decode_logically(old)
    databases = used_databases(trial)
    for database in databases:
        copy(old, new, database)
    await_true(lambda: all(is_copied(new, database) for database in databases), 120, "the databases are not copied")


def used_databases(trial):
    return DATABASES[:1] if trial.arguments.gate else DATABASES


def make_visible(work, root):
    """Mounts the folder of the trial and the system's own ones in the newer Debian. The mounts belong to the trial."""
    (root / str(work)[1:]).mkdir(parents=True, exist_ok=True)
    for folder in ("/proc", "/dev"):
        run("mount", "--rbind", folder, f"{root}{folder}")
    # Shared, so that the disks of the new nodes appear there, too.
    run("mount", "--make-rshared", "/")
    run("mount", "--rbind", work, f"{root}{work}")


def decode_logically(cluster):
    """Sets wal_level, which needs a restart of each node."""
    cluster.control("edit-config", cluster.release.scope, "-s", "postgresql.parameters.wal_level=logical", "--force")
    await_true(lambda: all(node.state().get("pending_restart") for node in cluster.nodes), 60, "no restart is pending")
    for node in [*(one for one in cluster.nodes if one is not cluster.leader()), cluster.leader()]:
        cluster.control("restart", cluster.release.scope, node.name, "--force", within=120)
        cluster.settle()


def copy(old, new, database):
    """Copies the tables, and then each change of them."""
    source, target = old.leader(), new.leader()
    source.sql("CREATE PUBLICATION major FOR ALL TABLES", database)
    schema = target.folder / f"{database}.sql"
    # The newer pg_dump, since an older one does not know the newer server.
    words = ["--schema-only", "--no-publications", "-f", schema, address(old, database)]
    dumped = run(*target.command(target.release.binaries / "pg_dump", *words), within=120)
    if dumped.strip():
        raise Failed(f"pg_dump: {dumped}")
    target.tool("psql", "-XAtq", "-v", "ON_ERROR_STOP=1", "-d", database, "-f", schema)
    target.sql(f"CREATE SUBSCRIPTION major_{database} CONNECTION '{address(old, database)}' PUBLICATION major",
               database)


def address(cluster, database):
    hosts = ",".join(node.address for node in cluster.nodes)
    return (f"host={hosts} port={cluster.release.port} dbname={database} user=postgres password=change-me-1 "
            "target_session_attrs=read-write")


def is_copied(cluster, database):
    states = cluster.leader().sql("SELECT DISTINCT srsubstate FROM pg_subscription_rel", database).split()
    return states == ["r"]


def major(trial):
    """Stops the writes on the old cluster, waits for the last change, and opens the new one. The gates find it by their
    URL."""
    old, new = trial.cluster, trial.new_cluster
    source, target, databases = old.leader(), new.leader(), used_databases(trial)
    # libpq leaves a read-only server out. The gates' own transactions ask for READ WRITE, which needs a right.
    source.sql("ALTER ROLE gate SET default_transaction_read_only = on")
    for database in databases:
        source.sql("REVOKE INSERT, UPDATE, DELETE, TRUNCATE ON ALL TABLES IN SCHEMA public FROM gate", database)
    end_connections(source)
    last = source.sql("SELECT pg_current_wal_flush_lsn()").strip()
    await_true(lambda: source.sql("SELECT count(*) FROM pg_replication_slots WHERE slot_type = 'logical' AND "
                                  f"confirmed_flush_lsn >= '{last}'").strip() == str(len(databases)),
               60, "the new cluster has not the last change")
    for database in databases:
        compare(source, target, database)
        for line in source.sql("SELECT format('SELECT setval(%L, %s)', quote_ident(schemaname) || '.' || "
                               "quote_ident(sequencename), last_value) FROM pg_sequences WHERE last_value IS NOT NULL",
                               database).splitlines():
            target.sql(line, database)
        target.sql(f"DROP SUBSCRIPTION major_{database}", database)
    target.sql("ALTER ROLE gate RESET default_transaction_read_only")
    trial.cluster = new

    def repair():
        for node in [*(one for one in old.nodes if one is not source), source]:
            node.stop()
    return repair


def end_connections(node):
    """Ends the connections of the gates that were there before, and waits until their transactions have ended."""
    since = node.sql("SELECT now()").strip()
    ended = ("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
             f"WHERE usename = 'gate' AND backend_start < '{since}'")
    await_true(lambda: node.sql(ended).strip() == "0", 30, "a connection of a gate does not end")


def compare(source, target, database):
    """Requires that all tables have the same rows in both clusters."""
    tables = source.sql(TABLES, database).split()
    if not tables or tables != target.sql(TABLES, database).split():
        raise Failed(f"{database}: the clusters have different tables")
    for table in tables:
        rows = f"SELECT count(*), md5(string_agg(one::text, ';' ORDER BY one::text COLLATE \"C\")) FROM {table} AS one"
        old, new = source.sql(rows, database), target.sql(rows, database)
        if old != new:
            raise Failed(f"{database}: {table} has other rows in the new cluster: {old.strip()} and {new.strip()}")
