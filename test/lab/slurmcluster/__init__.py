"""A private, real Slurm cluster for tests and the demo (see README.md)."""

from .cluster import SlurmCluster
from .config import ClusterError, ClusterSpec

__all__ = ["ClusterError", "ClusterSpec", "SlurmCluster"]
