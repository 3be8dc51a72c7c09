"""All that happens to one object of the API server."""
import threading

from .rig import wait_until


class History(threading.Thread):
    """From now on, and ten minutes at most."""

    def __init__(self, api, collection, name):
        super().__init__(daemon=True)
        self.api, self.collection, self.name = api, collection, name
        self.seen = []  # (event type, object)
        self.start()

    def run(self):
        for event in self.api.follow(self.collection, self.name):
            self.seen.append((event["type"], event["object"]))

    def until_now(self):
        """What has happened until this call."""
        now = self.api.get(f"{self.collection}/{self.name}")["metadata"]["resourceVersion"]
        wait_until(lambda: any(one["metadata"]["resourceVersion"] == now for _, one in self.seen), what="the watch")
        return list(self.seen)
