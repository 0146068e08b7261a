"""PgBouncer in front of each node, and HAProxy beside each gate, with the files of config/patroni."""
from cluster_trial.network import ADDRESSES, inside, spawn
from virtual_machine import PROJECT, Failed, await_true, run

# The port of HAProxy, at the address of the gate.
PORT = 5000


def text_of(name, *changes):
    """A file of config/patroni with changes. Each of them is in the file."""
    text = (PROJECT / "config/patroni" / name).read_text()
    for old, new in changes:
        if old not in text:
            raise Failed(f"config/patroni/{name} does not contain {old}")
        text = text.replace(old, new)
    return text


def configure_pooler(node, leader):
    """Writes the files of the node's PgBouncer."""
    folder = node.folder / "pgbouncer"
    folder.mkdir()
    listed = leader.sql("SELECT format('\"%s\" \"%s\"', rolname, rolpassword) FROM pg_authid WHERE rolname = 'gate'")
    (folder / "userlist.txt").write_text(listed)
    (folder / "pgbouncer.ini").write_text(text_of(
        "pgbouncer.ini", ("10.0.0.1", node.address), ("/etc/pgbouncer", str(folder)),
        ("unix_socket_dir = /var/run/postgresql", "unix_socket_dir ="), ("/var/run/postgresql", str(folder)),
        ("/var/log/postgresql/pgbouncer.log", str(folder / "log"))))
    run("chown", "-R", "postgres:postgres", folder)
    folder.chmod(0o700)


def start_pooler(node):
    log = node.folder / "pgbouncer.log"
    node.pooler = spawn(
        inside(node.name, "setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups", "--no-new-privs",
               "/usr/sbin/pgbouncer", node.folder / "pgbouncer/pgbouncer.ini"), log)
    await_true(lambda: "process up" in log.read_text(), 30, lambda: f"PgBouncer has not started: {log.read_text()}")


def start_balancer(gate, folder):
    """Starts HAProxy on the gate's host. The commands of operators reach it from outside, too."""
    config = folder / "haproxy.cfg"
    config.write_text(text_of("haproxy.cfg", ("bind 127.0.0.1:5000", f"bind {ADDRESSES[gate]}:{PORT}")))
    return spawn(inside(gate, "haproxy", "-db", "-f", config), folder / "haproxy.log")
