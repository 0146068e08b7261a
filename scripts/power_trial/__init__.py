"""The trials of scripts/power: the gate, and the MFA backend with it, on a disk with a write cache."""
