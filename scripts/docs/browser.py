#!/usr/bin/python3
"""Opens build/docs/site in a headless Chromium, over loopback, and checks what a reader would see: the search finds what
is looked for, no picture is broken, and no page is wider than a phone (390 px).

  scripts/docs/browser.py                     all checks
  scripts/docs/browser.py PAGE FILE.png       a picture of a page at 390 px, such as docs/how-to/operator/
"""
import base64
import functools
import http.server
import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from markdown import ROOT

SITE = ROOT / "build/docs/site"
PHONE = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
SEARCHES = {"NotReady": "troubleshooting", "MungeUnavailable": "conditions", "SlurmdDown": "alerts",
            "slurmlet.io/drain-policy": "labels", "cordon": "drain-by-cordon", "uninstall": "how-to/uninstall",
            "CordonNotDrained": "events"}


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        pass


def served():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(SITE)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server, f"http://127.0.0.1:{server.server_address[1]}/"


class Browser:
    """The DevTools protocol over two pipes: no port, no library."""

    def __init__(self):
        self.profile = tempfile.mkdtemp(prefix="slurmlet-docs-")
        its_input, self.output = os.pipe()
        self.input, its_output = os.pipe()

        def pipes():
            os.dup2(its_input, 3)
            os.dup2(its_output, 4)

        sandbox = ["--no-sandbox"] if os.getuid() == 0 else []
        self.process = subprocess.Popen(
            ["chromium", "--headless=new", *sandbox, "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             "--disable-background-networking", "--disable-sync", "--disable-extensions", f"--user-data-dir={self.profile}",
             "--remote-debugging-pipe", "about:blank"],
            preexec_fn=pipes, pass_fds=(3, 4), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(its_input)
        os.close(its_output)
        self.reader, self.numbers, self.session = os.fdopen(self.input, "rb"), itertools.count(1), None
        self.events = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.call("Page.enable")
        self.call("Emulation.setDeviceMetricsOverride", **PHONE)

    def message(self):
        out = bytearray()
        while (byte := self.reader.read(1)) != b"\0":
            if not byte:
                raise EOFError("the browser has ended")
            out += byte
        return json.loads(out)

    def call(self, method, **parameters):
        number = next(self.numbers)
        command = {"id": number, "method": method, "params": parameters}
        if self.session:
            command["sessionId"] = self.session
        os.write(self.output, json.dumps(command).encode() + b"\0")
        while True:
            answer = self.message()
            if answer.get("id") == number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer.get("method"))

    def open(self, url):
        self.events.clear()
        self.call("Page.navigate", url=url)
        while "Page.loadEventFired" not in self.events:
            self.events.append(self.message().get("method"))

    def value(self, script):
        """Of an expression, or of its promise."""
        done = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in done:
            raise RuntimeError(done["exceptionDetails"].get("text"))
        return done["result"].get("value")

    def picture(self, path):
        shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=False)
        Path(path).write_bytes(base64.b64decode(shot["data"]))

    def close(self):
        self.process.terminate()
        self.process.wait()
        self.reader.close()
        os.close(self.output)
        shutil.rmtree(self.profile, ignore_errors=True)


LOOK = """
(async () => {
  for (const image of document.images) image.loading = "eager";
  await Promise.all([...document.images].map((image) => image.decode().catch(() => 0)));
  const width = document.scrollingElement.scrollWidth;
  return {
    broken: [...document.images].filter((image) => !image.naturalWidth).map((image) => image.src),
    width,
    wide: width <= %(width)d ? [] : [...document.querySelectorAll(".md-content *")]
      .filter((element) => element.getBoundingClientRect().right > %(width)d + 1).slice(0, 3)
      .map((element) => element.outerHTML.slice(0, 120)),
    images: document.images.length,
    title: document.title};
})()""" % PHONE

FOUND = """
new Promise((done) => {
  const look = () => {
    const found = [...document.querySelectorAll(".md-search-result__link")].map((link) => link.href);
    if (found.length || Date.now() > until) done(found); else setTimeout(look, 50);
  };
  const until = Date.now() + 20000;
  look();
})"""


def check(browser, address):
    problems, images = [], 0
    paths = sorted(str(path.parent.relative_to(SITE)) for path in SITE.rglob("index.html"))
    for path in paths:
        url = address + ("" if path == "." else path + "/")
        browser.open(url)
        seen = browser.value(LOOK)
        images += seen["images"]
        problems += [f"{path}: broken picture {image}" for image in seen["broken"]]
        if seen["width"] > PHONE["width"]:
            problems.append(f"{path}: {seen['width']} px wide on a phone: {seen['wide']}")
    for words, page in SEARCHES.items():
        browser.open(f"{address}?q={words.replace('/', '%2F')}")
        found = browser.value(FOUND)
        if not any(page in link for link in found):
            problems.append(f"search for {words}: no page of {page} among {found[:5]}")
    if not paths:
        problems.append("the site has no pages")
    print(f"{len(paths)} pages, {images} pictures, {len(SEARCHES)} searches in {browser.call('Browser.getVersion')['product']}")
    return problems


def main():
    server, address = served()
    browser = Browser()
    try:
        if len(sys.argv) > 2:
            browser.open(address + sys.argv[1])
            browser.picture(sys.argv[2])
            return
        problems = check(browser, address)
    finally:
        browser.close()
        server.shutdown()
    print("\n".join(problems))
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
