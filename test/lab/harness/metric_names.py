"""The metrics of slurmlet and their labels, as dashboards and alerts may use them. People build on
these names: renaming one is a breaking change."""
import re
import urllib.request

METRICS = {
    "slurmlet_build_info": {"version"},
    "slurmlet_node_registered": set(),
    "slurmlet_node_gone_with_machine": set(),
    "slurmlet_lease_age_seconds": set(),
    "slurmlet_api_requests_total": {"verb", "code"},
    "slurmlet_pods_rejected_total": set(),
    "slurmlet_pods_finished_total": set(),
    "slurmlet_pods_waiting": set(),
    "slurmlet_pods_unreadable": set(),
    "slurmlet_pod_watch_up": set(),
    "slurmlet_events_dropped_total": set(),
    "slurmlet_slurmd_up": set(),
    "slurmlet_slurm_state_age_seconds": set(),
    "slurmlet_slurm_state_max_age_seconds": set(),
    "slurmlet_slurmctld_queries_total": set(),
    "slurmlet_slurmctld_answers_total": set(),
    "slurmlet_slurmctld_last_query_seconds": set(),
    "slurmlet_slurm_source_info": {"source"},
    "slurmlet_slurmctld_failures_total": {"cause"},
    "slurmlet_slurm_node_state": {"state"},
    "slurmlet_slurm_cpus": {"kind"},
    "slurmlet_slurm_memory_bytes": {"kind"},
    "slurmlet_slurm_gpus": {"kind"},
    "slurmlet_certificate_expiration_timestamp_seconds": {"certificate"},
    "slurmlet_certificate_request_pending": {"certificate"},
    "slurmlet_certificate_requests_total": {"certificate"},
    "slurmlet_certificate_renewals_total": {"certificate"},
    "slurmlet_credential_reload_failures_total": set(),
    "slurmlet_serving_certificate_self_signed": set(),
    "slurmlet_endpoint_requests_total": {"code"},
    "slurmlet_endpoint_reviews_total": {"kind"},
    "slurmlet_endpoint_connections": set(),
    "slurmlet_endpoint_listening": {"endpoint"},
    "slurmlet_endpoint_bind_failures_total": {"endpoint"},
    "slurmlet_endpoint_handshakes_delayed_total": set(),
    "slurmlet_endpoint_rejected_connections_total": {"cause"},
    "slurmlet_children_cpu_seconds_total": set(),
    "process_cpu_seconds_total": set(),
    "process_resident_memory_bytes": set(),
    "process_virtual_memory_bytes": set(),
    "process_open_fds": set(),
    "process_max_fds": set(),
    "process_start_time_seconds": set(),
    "process_threads": set(),
}
# Of slurmlet-operator.
OPERATOR_METRICS = {
    "slurmlet_operator_leader": set(),
    "slurmlet_operator_ready": {"check"},
    "slurmlet_operator_nodes": set(),
    "slurmlet_operator_slurm_nodes": set(),
    "slurmlet_operator_records_waiting": set(),
    "slurmlet_operator_dumps_total": {"result"},
    "slurmlet_operator_dumps_unchanged_total": set(),
    "slurmlet_operator_dump_seconds": set(),
    "slurmlet_operator_dump_timestamp_seconds": set(),
    "slurmlet_operator_record_writes_total": {"result"},
    "slurmlet_operator_node_updates_total": {"action"},
    "slurmlet_operator_machines_waiting": set(),
    "slurmlet_operator_machines_waiting_since_timestamp_seconds": set(),
    "slurmlet_operator_machine_jobs": set(),
    "slurmlet_operator_machine_actions_total": {"action"},
    "slurmlet_operator_controllers_without_backup": set(),
    "slurmlet_operator_machines_sleeping": set(),
    "slurmlet_operator_unhealthy_nodes": {"action"},
    "slurmlet_operator_nodes_deleted_total": {"result"},
    "slurmlet_operator_certificate_requests_waiting": set(),
    "slurmlet_operator_certificate_approvals_total": {"result"},
}
# Of slurmlet-operator that leads, with autoscale.
SCALING_METRICS = {
    "slurmlet_operator_partition_pending_jobs": {"partition"},
    "slurmlet_operator_partition_pending_nodes": {"partition"},
    "slurmlet_operator_partition_pending_gpus": {"partition"},
    "slurmlet_operator_partition_idle_nodes": {"partition"},
    "slurmlet_operator_partition_allocated_nodes": {"partition"},
    "slurmlet_operator_partition_wanted_machines": {"partition", "machinedeployment"},
    "slurmlet_operator_machinedeployment_replicas": {"machinedeployment"},
    "slurmlet_operator_machinedeployment_max_size": {"machinedeployment"},
    "slurmlet_operator_machinedeployment_late_machines": {"machinedeployment"},
    "slurmlet_operator_jobs_too_large": set(),
    "slurmlet_operator_jobs_unknown_reason": {"reason"},
    "slurmlet_operator_scale_actions_total": {"action"},
}
# Of 0.1.0, exported beside the new ones for one release.
OLD_NAMES = {"slurmlet_slurmctld_questions_total", "slurmlet_slurmctld_last_question_seconds"}


def samples(text):
    """{name: [({label: value}, value)]} of an exposition in Prometheus' text format."""
    found = {}
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        name, labels, value = re.fullmatch(
            r"([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)(?: -?\d+)?", line).groups()
        pairs = dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', labels or ""))
        found.setdefault(name, []).append((pairs, float(value)))
    return found


def scraped(port):
    """The samples of slurmlet-operator's metricsAddress."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        return samples(answer.read().decode())


def one(text, name, **labels):
    """The value of the one sample of that name with these labels."""
    matching = [value for pairs, value in samples(text).get(name, [])
                if labels.items() <= pairs.items()]
    assert len(matching) == 1, f"{name}{labels}: {len(matching)} samples"
    return matching[0]
