"""The node's credential expires, is revoked, is replaced."""
import time

from harness.bootstrap import credential_id, kubeconfig_certificate
from harness.rig import wait_until
from harness.service_account import ServiceAccount
from node import token_kubeconfig_text
from registry import row

LIFE = 45  # seconds of the certificate that expires
OFFLINE = 60  # seconds until an administrator brings another credential


@row("credential expired", own_nodes=True, hinders=True,
     done=f"client certificate of {LIFE} s, a new one {OFFLINE} s after its end",
     must="log names file and fix; lease within 15 s of the new one")
def expired(trial):
    with trial.lab.slurm() as slurm, trial.lab.node(slurm) as node:
        trial.adopt(node)
        node.start()
        node.wait_right()
        node.put(node.fresh_credential("--ttl", f"{LIFE}s"))
        end = time.time() + LIFE
        trial.prepare()
        wait_until(lambda: time.time() >= end, LIFE + 5)
        with trial.fault():
            node.wait_log("put a fresh credential for system:node:" + node.name)
            trial.seen("log", within=30)
            time.sleep(OFFLINE)
            renewed = [at for at in node.audit.renewals(trial.mark) if at > end + 1]
            trial.require(not renewed, "renewed with an expired credential")
            node.put(node.fresh_credential())
        trial.back(within=15)
        trial.finish()


@row("credential revoked", own_nodes=True, hinders=True,
     done=f"token's service account deleted; {OFFLINE} s later recreated, new token in the file",
     must="401 in the log; lease within 15 s of the new token")
def revoked(trial):
    lab = trial.lab
    with lab.slurm() as slurm, lab.node(slurm) as node:
        account = ServiceAccount(lab.plane, node.name)
        everything = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]
        account.grant(f"{node.name}-all", everything)
        token = node.directory / "token"
        node.give(token, account.token())
        node.put(token_kubeconfig_text(lab.plane, node.server, token))
        node.audit.user = account.user
        trial.adopt(node)
        node.start()
        trial.prepare()
        with trial.fault():
            lab.plane.admin.delete(f"{account.path}/{account.name}")
            node.wait_log("401")
            trial.seen("401", within=60)
            time.sleep(OFFLINE)
            again = ServiceAccount(lab.plane, node.name)
            # Known to the server's caches before it is used: a rejected token is remembered.
            text = again.token()
            time.sleep(2)
            node.give(token, text)
        trial.back(within=15)
        trial.finish()


@row("credential rotated", done="kubeconfig with a new certificate, five times",
     must="each in use within 10 s")
def rotated(trial):
    node, slowest = trial.node, 0.0
    with trial.fault():
        for _ in range(5):
            node.put(node.fresh_credential())
            began = time.time()
            wanted = credential_id(kubeconfig_certificate(node.kubeconfig))
            wait_until(lambda: wanted in node.audit.credentials(trial.mark), 30,
                       "the new credential in use")
            slowest = max(slowest, time.time() - began)
    trial.seen("slowest", within=10, since=time.time() - slowest)
    trial.back(within=20)
