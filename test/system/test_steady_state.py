"""What a node costs the API server while nothing happens."""
import collections
import time

import pytest


@pytest.mark.slow
def test_idle_node_only_renews_its_lease(rig, idle_slurm, timing):
    """No reads at all, and one status patch at the most, in 25 seconds."""
    rig.provision("7c1d5b1a-5c8e-4a57-8a0c-1d2e3f4a5b6c")
    rig.start_and_know()
    rig.wait_event("Registered")
    before = rig.wait_renewed()["spec"]  # start-up is over
    since = rig.audit.mark()
    time.sleep(25)  # the time that is measured
    counts = collections.Counter(
        (verb, resource) for _, verb, resource, _ in rig.audit.requests(since))
    timing("lease updates in 25 s", counts[("update", "leases")])
    assert counts.pop(("update", "leases")) in (2, 3)
    assert counts.pop(("patch", "nodes/status"), 0) <= 1
    assert counts == {}
    after = rig.lease()["spec"]
    assert after["renewTime"] > before["renewTime"]
    assert after["acquireTime"] == before["acquireTime"]
