"""Hosts in network namespaces, joined by a bridge that only the trial has."""
import subprocess

from virtual_machine import Failed, end_with_parent, run

# The subnet is that of config/patroni/patroni.yml.
ADDRESSES = {"db1": "10.0.0.1", "db2": "10.0.0.2", "db3": "10.0.0.3", "gate1": "10.0.0.11", "gate2": "10.0.0.12"}
OUTSIDE = "10.0.0.254"


def inside(host, *command):
    """The words of a command that runs on the host."""
    return ["nsenter", f"--net=/run/netns/{host}", "--", *command]


def spawn(command, log, **options):
    with open(log, "ab") as output:
        return subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                                preexec_fn=end_with_parent, **options)


def end(process):
    if process and process.poll() is None:
        process.kill()
    if process:
        process.wait()


class Network:
    """Makes the hosts. The devices are on none of them: they have the bridge's own address."""

    def __init__(self):
        # The namespace of mounts belongs to the trial, too.
        run("mount", "-t", "tmpfs", "tmpfs", "/run")
        run("ip", "link", "set", "lo", "up")
        run("ip", "link", "add", "bridge", "type", "bridge")
        run("ip", "address", "add", f"{OUTSIDE}/24", "dev", "bridge")
        run("ip", "link", "set", "bridge", "up")
        for host, address in ADDRESSES.items():
            run("ip", "netns", "add", host)
            run("ip", "link", "add", host, "master", "bridge", "type", "veth", "peer", "name", "eth0", "netns", host)
            run("ip", "link", "set", host, "up")
            run(*inside(host, "ip", "address", "add", f"{address}/24", "dev", "eth0"))
            run(*inside(host, "ip", "link", "set", "eth0", "up"))
            run(*inside(host, "ip", "link", "set", "lo", "up"))

    def cut_off(self, host, reachable=()):
        """Drops all packets between the host and the others, without a reply, except those of the reachable addresses."""
        rules = ['iifname "eth0"', 'oifname "eth0"']
        if reachable:
            addresses = "{ " + ", ".join(reachable) + " }"
            rules = [f"{rules[0]} ip saddr != {addresses}", f"{rules[1]} ip daddr != {addresses}"]
        table = f"""table inet partition {{
  chain input {{ type filter hook input priority 0; {rules[0]} drop; }}
  chain output {{ type filter hook output priority 0; {rules[1]} drop; }}
}}
"""
        done = subprocess.run(inside(host, "nft", "-f", "-"), input=table, text=True, capture_output=True, timeout=60)
        if done.returncode != 0:
            raise Failed(f"nft: {done.stderr}")

    def reconnect(self, host):
        run(*inside(host, "nft", "delete", "table", "inet", "partition"))
