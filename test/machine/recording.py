"""What a person would see in a terminal of a machine, as a file for asciinema (asciicast v2: a header, then
[seconds, "o", text] a line)."""
import json
import time


class Recording:
    def __init__(self, path, title):
        self.path, self.began = path, time.monotonic()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"version": 2, "width": 120, "height": 40, "title": title}) + "\n")

    def show(self, command, said):
        """A command that has just ended, and its output."""
        with self.path.open("a") as out:
            for text in (f"# {command}\n", said):
                out.write(json.dumps([round(time.monotonic() - self.began, 3), "o", text.replace("\n", "\r\n")]) + "\n")

    @property
    def seconds(self):
        return time.monotonic() - self.began
