#!/usr/bin/env python3
# Opens connections at a steady rate and counts those that are refused, reset or not greeted with HTTP/2's SETTINGS.
"""python3 connects.py --target 127.0.0.1:7070 --rate 50

A connection may be accepted by the kernel and lost with the listening socket in whose queue it lies: so each one says the
preface of HTTP/2 and waits for the server's SETTINGS. The protocol of its input and output is that of src/client.cc.
"""
import argparse
import asyncio
import json
import sys
import time

from processes import HELLO

TIMEOUT = 5


class Connects:
    def __init__(self, options):
        self.host, port = options.target.rsplit(":", 1)
        self.port, self.rate = int(port), options.rate
        self.restart()

    def restart(self):
        self.made, self.failed, self.events, self.slowest = 0, {}, [], 0.0

    async def one(self):
        begun, writer = time.monotonic(), None
        try:
            async with asyncio.timeout(TIMEOUT):
                reader, writer = await asyncio.open_connection(self.host, self.port)
                writer.write(HELLO)
                if not await reader.read(9):
                    self.fail("closed before SETTINGS")
        except ConnectionRefusedError:
            self.fail("refused")
        except (ConnectionResetError, BrokenPipeError):
            self.fail("reset")
        except TimeoutError:
            self.fail("timeout")
        finally:
            self.made += 1
            self.slowest = max(self.slowest, time.monotonic() - begun)
            if writer is not None:
                writer.close()

    def fail(self, why):
        self.failed[why] = self.failed.get(why, 0) + 1
        self.events.append([time.time(), "connect", why])

    async def run(self):
        lines = asyncio.Queue()
        loop = asyncio.get_running_loop()
        loop.add_reader(sys.stdin, lambda: lines.put_nowait(sys.stdin.readline()))
        start, number, running = loop.time(), 0, set()
        print("ready", flush=True)
        while True:
            while not lines.empty():
                line = lines.get_nowait()
                if line.strip() == "go":
                    self.restart()
                elif not line:
                    loop.remove_reader(sys.stdin)
                    await asyncio.gather(*running)
                    return
            task = asyncio.create_task(self.one())
            running.add(task)
            task.add_done_callback(running.discard)
            number += 1
            await asyncio.sleep(max(0, start + number / self.rate - loop.time()))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--target", default="127.0.0.1:7070")
    parser.add_argument("--rate", type=float, default=50)
    connects = Connects(parser.parse_args())
    asyncio.run(connects.run())
    print(json.dumps(dict(client="connects", calls=connects.made, failed=connects.failed, max_ms=connects.slowest * 1e3,
                          events=connects.events)), flush=True)


if __name__ == "__main__":
    main()
