# Browser: a headless Chromium, driven by its DevTools protocol over a pipe. Page: a tab, and what it asked for and complained of.
import base64
import itertools
import json
import os
import shutil
import subprocess
import tempfile
import threading
import time

BOUND = 60  # of any wait, in seconds: far more than any should take on a loaded machine


# Where Chromium is; None: nowhere.
def chromium():
    return shutil.which("chromium")


class Browser:
    # `more`: further flags.
    def __init__(self, more=()):
        self.folder = tempfile.mkdtemp(prefix="sluice-chromium.")
        # Of the browser's descriptors 3 is read and 4 is written: messages of JSON that end with a zero byte.
        child_reads, self._write = os.pipe()
        self._read, child_writes = os.pipe()
        flags = ["--headless=new", "--remote-debugging-pipe", f"--user-data-dir={self.folder}", "--no-first-run",
                 "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-gpu",
                 "--disable-dev-shm-usage", "--disable-extensions", "--hide-scrollbars", "--mute-audio",
                 # No name is looked up: what is not on loopback fails, and is seen as a request all the same.
                 "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1", *more]
        if os.geteuid() == 0:
            flags.append("--no-sandbox")  # Chromium has none for root
        with open(f"{self.folder}/chromium.out", "wb") as out:
            self._process = subprocess.Popen(
                ["bash", "-c", f'exec "$@" 3<&{child_reads} 4>&{child_writes}', "chromium", chromium(), *flags, "about:blank"],
                stdin=subprocess.DEVNULL, stdout=out, stderr=out, pass_fds=[child_reads, child_writes],
                start_new_session=True)
        os.close(child_reads)
        os.close(child_writes)
        self._numbers = itertools.count(1)
        self._changed = threading.Condition()
        self._answers, self._pages, self._gone = {}, {}, False
        self._reader = threading.Thread(target=self._hear, daemon=True)
        self._reader.start()

    def _hear(self):
        with os.fdopen(self._read, "rb", buffering=0) as pipe:
            text = b""
            while chunk := pipe.read(1 << 16):
                *messages, text = (text + chunk).split(b"\0")
                with self._changed:
                    for message in map(json.loads, messages):
                        if "id" in message:
                            self._answers[message["id"]] = message
                        elif message.get("sessionId") in self._pages:
                            self._pages[message["sessionId"]].heard(message["method"], message["params"])
                    self._changed.notify_all()
        with self._changed:
            self._gone = True
            self._changed.notify_all()

    # Waits until `look` gives something true, after each message; AssertionError, naming `what`, if it does not in time.
    def wait(self, look, what):
        with self._changed:
            end = time.monotonic() + BOUND
            while not (seen := look()):
                if self._gone:
                    raise AssertionError(f"the browser has ended: {self.output()}")
                if not self._changed.wait(end - time.monotonic()):
                    raise AssertionError(f"not within {BOUND} s: {what}")
            return seen

    def output(self):
        with open(f"{self.folder}/chromium.out", encoding="utf-8", errors="replace") as file:
            return file.read()[-4000:]

    def ask(self, method, session=None, **parameters):
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = session
        rest = json.dumps(message).encode() + b"\0"
        while rest:
            rest = rest[os.write(self._write, rest):]
        answer = self.wait(lambda: self._answers.pop(number, None), method)
        if "error" in answer:
            raise AssertionError(f"{method}: {answer['error']}")
        return answer["result"]

    # A tab of its own, with its own storage.
    def page(self, **options):
        context = self.ask("Target.createBrowserContext")["browserContextId"]
        target = self.ask("Target.createTarget", url="about:blank", browserContextId=context)["targetId"]
        session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Page(self, session, **options)
        return page

    def add(self, session, page):
        with self._changed:
            self._pages[session] = page

    def close(self):
        if self._process.poll() is None:
            try:
                self.ask("Browser.close")
                self._process.wait(BOUND)
            except (AssertionError, subprocess.TimeoutExpired):
                self._process.kill()
                self._process.wait(BOUND)
        os.close(self._write)
        self._reader.join(BOUND)
        shutil.rmtree(self.folder, ignore_errors=True)


class Page:
    # `scripts`: whether those of the page run. `scheme`: "light" or "dark".
    def __init__(self, browser, session, scripts=True, scheme="light", width=1280, height=900):
        self.browser, self.session = browser, session
        self.requests, self.statuses, self.complaints, self.loads, self.idle = [], {}, [], 0, False
        self.protocols = {}  # of responses, by URL
        browser.add(session, self)
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.ask(f"{domain}.enable")
        self.ask("Page.setLifecycleEventsEnabled", enabled=True)
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.ask("Emulation.setFocusEmulationEnabled", enabled=True)  # visible, as a tab that is looked at
        if not scripts:
            self.ask("Emulation.setScriptExecutionDisabled", value=True)

    def ask(self, method, **parameters):
        return self.browser.ask(method, self.session, **parameters)

    # Called with the browser's lock.
    def heard(self, method, params):
        if method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif method == "Network.responseReceived":
            self.statuses[params["response"]["url"]] = params["response"]["status"]
            self.protocols.setdefault(params["response"]["url"], []).append(params["response"].get("protocol"))
        elif method == "Page.loadEventFired":
            self.loads += 1
        elif method == "Runtime.consoleAPICalled":
            self.complaints.append(f"console: {params['args']}")
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(f"exception: {params['exceptionDetails']}")
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("warning", "error"):
            self.complaints.append(f"log: {params['entry']}")

    # Loads `url`, with all that it names.
    def open(self, url):
        before = self.loads
        self.ask("Page.navigate", url=url)
        self.browser.wait(lambda: self.loads > before, f"{url} is loaded")

    # The value of an expression of JavaScript.
    def value(self, expression):
        answer = self.ask("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise AssertionError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    # What a reader sees, in text.
    def text(self):
        return self.value("document.body.innerText")

    # PNG; the whole page, or its first `height` pixels.
    def screenshot(self, height=None):
        size = self.ask("Page.getLayoutMetrics")["cssContentSize"]
        high = size["height"] if height is None else min(height, size["height"])
        clip = {"x": 0, "y": 0, "width": size["width"], "height": high, "scale": 1}
        return base64.b64decode(self.ask("Page.captureScreenshot", format="png", clip=clip, captureBeyondViewport=True,
                                         optimizeForSpeed=False)["data"])
