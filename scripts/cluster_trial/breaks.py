"""The ways to break the cluster. Each breaks something and returns the function that repairs it."""
import dataclasses
import os
import signal
import time
from typing import Callable, Optional

from cluster_trial.major import major, prepare_major
from cluster_trial.network import ADDRESSES, OUTSIDE, end
from cluster_trial.poolers import start_pooler
from virtual_machine import Failed, await_true


@dataclasses.dataclass
class Break:
    begin: Callable
    # Whether new devices get in before the repair.
    is_survived: bool = True
    # The gate through which they get in, if the other one has no leader. A load balancer sees that by /readyz.
    gate: Optional[str] = None
    # What takes place before the break, while devices use the cluster.
    prepare: Callable = lambda trial: None


def switchover(trial):
    trial.cluster.switch_over()
    return lambda: None


def update_standbys(trial):
    """Stops each standby as an update does, puts the programs of the newer minor version in its place if the trial has
    some, and starts it again."""
    leader = trial.cluster.leader()
    for node in trial.cluster.nodes:
        if node is not leader:
            update_node(trial, node)


def update_node(trial, node):
    node.stop()
    if trial.arguments.newer:
        node.use(trial.arguments.newer)
    node.start()
    # The leader counts a standby that has stopped for another moment.
    await_true(lambda: node.state().get("state") == "running", 60, f"{node.name} does not run again")
    trial.cluster.settle()


def update(trial):
    """Hands over to a standby, which has been updated, and updates the former leader."""
    leader = trial.cluster.leader()
    trial.cluster.switch_over()

    def repair():
        # Patroni does not stop a PostgreSQL that it is just starting.
        trial.cluster.settle()
        update_node(trial, leader)
        versions = {node.sql("SHOW server_version").split()[0] for node in trial.cluster.nodes}
        if len(versions) > 1:
            raise Failed(f"the nodes have different versions after the update: {', '.join(sorted(versions))}")
    return repair


def kill(trial):
    """Kills everything on the leader's node, as a power cut does."""
    leader = trial.cluster.leader()
    leader.kill()
    leader.etcd.kill()
    end(leader.pooler)

    def repair():
        leader.etcd.start()
        leader.start()
        if leader.pooler:
            start_pooler(leader)
    return repair


def freeze(trial):
    """Stops Patroni and PostgreSQL of the leader, which go on when another node leads."""
    leader = trial.cluster.leader()
    leader.send(signal.SIGSTOP)
    await_successor(trial, leader)
    return lambda: leader.send(signal.SIGCONT)


def etcd(trial):
    """Kills the etcd of the leader's node. The other two are a majority."""
    leader = trial.cluster.leader()
    leader.etcd.kill()
    return leader.etcd.start


def quorum(trial):
    """Kills two of three etcds. Without a majority, Patroni lets no node lead."""
    nodes = trial.chance.sample(trial.cluster.nodes, 2)
    for node in nodes:
        node.etcd.kill()
    time.sleep(trial.chance.uniform(10, 25))

    def repair():
        for node in nodes:
            node.etcd.start()
    return repair


def isolation(trial):
    """Cuts the leader's node off from all hosts."""
    leader = trial.cluster.leader()
    return cut_off_leader(trial, leader, {leader.name: []})


def rewind(trial):
    """The same, and the leader writes something that no standby has. pg_rewind must bring it back."""
    leader = trial.cluster.leader()
    before = leader.rewinds()
    trial.network.cut_off(leader.name)
    # A commit that does not wait for a standby. The gates never do that.
    leader.sql("SET synchronous_commit = local; CREATE TABLE unseen ()")
    await_successor(trial, leader)

    def repair():
        trial.network.reconnect(leader.name)
        await_true(lambda: leader.rewinds() > before, 120, f"pg_rewind has not brought {leader.name} back")
        trial.cluster.settle()
        if leader.sql("SELECT to_regclass('unseen')").strip():
            raise Failed(f"{leader.name} still has what it wrote alone")
    return repair


def partition(trial):
    """Cuts the leader's node off from the other nodes, and from all hosts except for the first gate. That gate reaches all
    nodes."""
    leader = trial.cluster.leader()
    return cut_off_leader(trial, leader, {leader.name: [ADDRESSES["gate1"]]})


def split(trial, leader=None):
    """Leaves the first gate, which devices reach, with the leader alone, and the second one with the other two nodes."""
    leader = leader or trial.cluster.leader()
    return cut_off_leader(trial, leader, {leader.name: [ADDRESSES["gate1"]], "gate1": [leader.address, OUTSIDE]})


def two_leaders(trial):
    """The same as `split`, but Patroni of the leader is stopped, so that its PostgreSQL remains a leader as well."""
    leader = trial.cluster.leader()
    os.kill(leader.process.pid, signal.SIGSTOP)
    reconnect = split(trial, leader)

    def repair():
        reconnect()
        os.kill(leader.process.pid, signal.SIGCONT)
    return repair


def cut_off_leader(trial, leader, reachable):
    """Cuts hosts off until another node leads. `reachable` has the addresses that remain for each."""
    for host, addresses in reachable.items():
        trial.network.cut_off(host, addresses)
    await_successor(trial, leader)

    def repair():
        for host in reachable:
            trial.network.reconnect(host)
    return repair


def full_disk(trial):
    """Fills the disk of the leader, which cannot extend its tables any more. It remains the leader."""
    leader = trial.cluster.leader()
    leader.fill_disk()
    try:
        leader.sql("CREATE TABLE filler AS SELECT repeat('x', 1000) FROM generate_series(1, 100)")
    except Failed as error:
        if "No space left on device" not in str(error):
            raise
    else:
        raise Failed(f"the disk of {leader.name} is not full")
    time.sleep(trial.chance.uniform(5, 15))
    return leader.empty_disk


def full_log(trial):
    """Fills the disk of the leader, and its write-ahead log to the end of the last segment. PostgreSQL exits. Patroni keeps
    the lock and starts it again and again, so that no other node may lead. When there is space, both standbys can have the
    first part of a record that the leader has not: neither can follow then, until one is initialized again."""
    leader = trial.cluster.leader()
    leader.fill_disk()
    for _ in range(100):
        try:
            leader.sql("SELECT pg_logical_emit_message(false, 'filler', repeat('x', 4000000))")
        except Failed:
            break
    else:
        raise Failed(f"the disk of {leader.name} is not full")
    time.sleep(trial.chance.uniform(20, 40))

    def repair():
        leader.empty_disk()
        try:
            trial.cluster.settle(within=45)
        except Failed:
            trial.cluster.reinitialize_standby()
    return repair


def await_successor(trial, leader):
    await_true(lambda: trial.cluster.leader(other_than=leader), 120, f"no other node took the place of {leader.name}")


# Those that need what only an option gives.
OPTIONAL = ["major"]
KINDS = {
    "switchover": Break(switchover),
    "update": Break(update, prepare=update_standbys),
    "kill": Break(kill),
    "freeze": Break(freeze),
    "etcd": Break(etcd),
    "quorum": Break(quorum, is_survived=False),
    "isolation": Break(isolation),
    "rewind": Break(rewind),
    "partition": Break(partition),
    "split": Break(split, gate="gate2"),
    "two-leaders": Break(two_leaders, gate="gate2"),
    "full-disk": Break(full_disk, is_survived=False),
    "full-log": Break(full_log, is_survived=False),
    "major": Break(major, prepare=prepare_major),
}
