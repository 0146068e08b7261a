"""The trial of scripts/cluster: a cluster of PostgreSQL under Patroni, the gates in front of it, and the ways to break it."""
