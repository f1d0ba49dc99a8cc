"""Chromium over the DevTools protocol's pipe: pages as a person sees them, and how long they take."""

import base64
import contextlib
import json
import os
import pathlib
import subprocess
import tempfile

PROGRAM = pathlib.Path("/usr/bin/chromium")
_FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-dev-shm-usage --remote-debugging-pipe --hide-scrollbars"
)

_SCROLL = """(async () => {
  const frame = () => new Promise(requestAnimationFrame);
  let longest = 0, before = await frame();
  for (let y = 0; y < document.documentElement.scrollHeight; y += 120) {
    scrollTo(0, y);
    const now = await frame();
    longest = Math.max(longest, now - before);
    before = now;
  }
  return longest;
})()"""


class Browser(contextlib.AbstractContextManager):
    """Ends with the block. Not for several threads."""

    def __enter__(self):
        self._folder = tempfile.TemporaryDirectory(prefix="cubind-browser.", ignore_cleanup_errors=True)
        home = self._folder.name
        theirs_in, ours_out = os.pipe()
        ours_in, theirs_out = os.pipe()
        command = f"exec {PROGRAM} {_FLAGS} --user-data-dir={home}/profile 3<&{theirs_in} 4>&{theirs_out}"
        self._process = subprocess.Popen(
            ["/bin/bash", "-c", command],
            env={"HOME": home, "PATH": "/usr/bin:/bin"},
            pass_fds=(theirs_in, theirs_out),
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self._out, self._in = open(ours_out, "wb", 0), open(ours_in, "rb", 1 << 16)
        self._number, self._rest, self._pages = 0, b"", {}
        return self

    def __exit__(self, *_):
        with contextlib.suppress(OSError, RuntimeError):
            self.call("Browser.close")
        self._process.wait(20)
        self._out.close()
        self._in.close()
        self._folder.cleanup()

    def page(self, address, *, width=1280, height=800, dark=False):
        """A tab that has loaded the address."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = self._pages[session] = Page(self, session)
        for domain in ("Page", "Runtime", "Log", "Network"):
            page.call(f"{domain}.enable")
        page.call("Performance.enable", timeDomain="threadTicks")
        page.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 500,
        )
        theme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        page.call("Emulation.setEmulatedMedia", features=[theme])
        page.call("Emulation.setFocusEmulationEnabled", enabled=True)  # no tab is hidden by another
        page.go(address)
        return page

    def call(self, method, session=None, **parameters):
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        self._out.write(json.dumps(message).encode() + b"\0")
        while True:
            reply = self.read()
            if reply.get("id") == self._number:
                break
        if "error" in reply:
            raise RuntimeError(f"{method}: {reply['error']['message']}")
        return reply["result"]

    def read(self):
        """The next message; a page notes its events."""
        while b"\0" not in self._rest:
            part = self._in.read1(1 << 16)
            if not part:
                raise RuntimeError("the browser has ended")
            self._rest += part
        text, _, self._rest = self._rest.partition(b"\0")
        message = json.loads(text)
        if page := self._pages.get(message.get("sessionId")):
            page.note(message)
        return message


class Page:
    """`faults`: errors of the console and of scripts. `elsewhere`: requests that left the site."""

    def __init__(self, browser, session):
        self._browser, self._session = browser, session
        self._loaded, self._site = False, ""
        self.faults, self.elsewhere = [], []

    def call(self, method, **parameters):
        return self._browser.call(method, self._session, **parameters)

    def go(self, address):
        """Loads it to the end."""
        self._loaded, self._site = False, "/".join(address.split("/")[:3])
        self.call("Page.navigate", url=address)
        while not self._loaded:
            self._browser.read()

    def evaluate(self, script):
        """What the script gives; a promise's value."""
        reply = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in reply:
            raise RuntimeError(str(reply["exceptionDetails"]))
        return reply["result"].get("value")

    def text(self, selector="main"):
        return self.evaluate(f"document.querySelector('{selector}').innerText")

    def first_paint_ms(self):
        """From the navigation on."""
        paint = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"
        return self.evaluate(
            f"new Promise((done) => {{ const look = () => {paint} ? done({paint}) : setTimeout(look, 5); look(); }})"
        )

    def longest_frame_ms(self):
        """Between two frames, while the page is scrolled from its top to its end."""
        return self.evaluate(_SCROLL)

    def busy_ms(self):
        """CPU time of the page's main thread so far: unlike the others, hardly changed by what else runs."""
        metrics = self.call("Performance.getMetrics")["metrics"]
        return 1e3 * next(metric["value"] for metric in metrics if metric["name"] == "ThreadTime")

    def picture(self, file, most_height=None):
        """A PNG of the whole page, or of its upper part."""
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        height = min(size["height"], most_height or size["height"])
        clip = {"x": 0, "y": 0, "width": size["width"], "height": height, "scale": 1}
        shot = self.call("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)
        pathlib.Path(file).write_bytes(base64.b64decode(shot["data"]))

    def close(self):
        self.call("Page.close")

    def note(self, message):
        method, event = message.get("method"), message.get("params", {})
        if method == "Page.loadEventFired":
            self._loaded = True
        elif method == "Runtime.exceptionThrown" or (
            method == "Log.entryAdded" and event["entry"]["level"] == "error"
        ):
            self.faults.append(json.dumps(event)[:500])
        elif method == "Network.requestWillBeSent":
            address = event["request"]["url"]
            if not address.startswith((self._site + "/", "data:")):
                self.elsewhere.append(address)
