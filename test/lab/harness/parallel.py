"""How the workers of a parallel run share the tests (./dev system)."""
import re

# Those of half a minute or more, the longest first. What is not named comes after these.
LONGEST = ["test_operator_rbac.py", "test_slurm_honesty.py", "test_operator_machines.py", "test_state_matrix.py 24.11", "test_state_matrix.py 26.05",
           "test_shared_files.py", "test_state_matrix.py own", "test_heartbeat.py", "test_endpoint_access.py", "deploy",
           "test_cluster_api.py", "test_records.py", "test_identity_rotation.py",
           "test_identity_bootstrap.py", "test_identity_reload.py", "test_service.py",
           "test_operator_management.py", "test_idle_loops.py",
           "test_slurm_all_states.py 24.11", "test_slurm_all_states.py 26.05", "test_operator.py", "test_slurm_all_states.py own", "test_api_outages.py",
           "test_signals.py", "test_endpoint_hostile.py", "test_slurm_outages.py", "test_slurmcluster.py",
           "test_pods.py", "test_machine_end.py", "test_slurm_releases.py 24.11", "test_slurm_releases.py 26.05", "test_demo.py",
           "test_operator_check.py", "test_serving_certificate.py", "test_two_daemons.py",
           "test_operator_reasons.py own", "test_operator_reasons.py 24.11", "test_operator_reasons.py 26.05", "test_check.py", "test_lifecycle.py",
           "test_contract.py", "test_slurm_gpus.py", "test_operator_rest.py 24.11",
           "test_operator_rest.py 26.05"]


def scope(nodeid):
    """What stays on one worker: a file, its part for one release of Slurm where it has a cluster of
    each, and all of test/deploy, whose files share a control plane of their own."""
    path, _, test = nodeid.partition("::")
    if "deploy/" in path:
        return "deploy"
    release = re.search(r"\[(own|\d\d\.\d\d)[-\]]", test)
    return path.rpartition("/")[2] + (f" {release[1]}" if release else "")


def longest_first(items):
    """So that all workers end at about the same time."""
    order = {name: number for number, name in enumerate(LONGEST)}
    items.sort(key=lambda item: order.get(scope(item.nodeid), len(order)))


def scheduler(config, log):
    """xdist's loadfile, by scope()."""
    from xdist.scheduler import LoadFileScheduling  # not needed by a run without workers

    class ByScope(LoadFileScheduling):
        def _split_scope(self, nodeid):
            return scope(nodeid)
    return ByScope(config, log)
