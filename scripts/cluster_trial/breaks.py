"""The ways to break the cluster. Each breaks something and returns the function that repairs it."""
import dataclasses
import os
import signal
import time
from typing import Callable, Optional

from cluster_trial.network import ADDRESSES, OUTSIDE, end
from virtual_machine import Failed, await_true, run


@dataclasses.dataclass
class Break:
    begin: Callable
    # Whether new devices get in before the repair.
    is_survived: bool = True
    # The gate through which they get in, if the other one has no leader. A load balancer sees that by /readyz.
    gate: Optional[str] = None


def switchover(trial):
    leader = trial.cluster.leader()
    run("patronictl", "-c", leader.config, "switchover", "--master", leader.name, "--force", within=120)
    return lambda: None


def kill(trial):
    """Kills everything on the leader's node, as a power cut does."""
    leader = trial.cluster.leader()
    leader.kill()
    end(leader.etcd)

    def repair():
        leader.start_etcd()
        leader.start()
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
    end(leader.etcd)
    return leader.start_etcd


def quorum(trial):
    """Kills two of three etcds. Without a majority, Patroni lets no node lead."""
    nodes = trial.chance.sample(trial.cluster.nodes, 2)
    for node in nodes:
        end(node.etcd)
    time.sleep(trial.chance.uniform(10, 25))

    def repair():
        for node in nodes:
            node.start_etcd()
    return repair


def isolation(trial):
    """Cuts the leader's node off from all hosts."""
    leader = trial.cluster.leader()
    return cut_off_leader(trial, leader, {leader.name: []})


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


KINDS = {
    "switchover": Break(switchover),
    "kill": Break(kill),
    "freeze": Break(freeze),
    "etcd": Break(etcd),
    "quorum": Break(quorum, is_survived=False),
    "isolation": Break(isolation),
    "partition": Break(partition),
    "split": Break(split, gate="gate2"),
    "two-leaders": Break(two_leaders, gate="gate2"),
    "full-disk": Break(full_disk, is_survived=False),
    "full-log": Break(full_log, is_survived=False),
}
