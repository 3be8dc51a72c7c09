"""What the demo, the benchmark and the system tests share: a real control plane, a real Slurm, the
daemon, and a small API client. Python 3.9+, standard library only."""
