"""The trials of scripts/machine, each of which is an operator's work in a machine of its own."""
