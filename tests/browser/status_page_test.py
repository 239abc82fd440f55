# The status page as a browser shows it: with scripts and without, in both colour schemes and without colours, on a small screen; what it
# asks for, whether it is well formed, and that it renews itself.
#   status_page_test.py BIN PROTO [TEST...]
import os
import sys
import unittest
import urllib.request
import xml.etree.ElementTree

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "faults"))

import html5lib  # pylint: disable=wrong-import-position

from chromium import Browser  # pylint: disable=wrong-import-position
from rig.case import FaultTest, main  # pylint: disable=wrong-import-position
from rig.wait import eventually  # pylint: disable=wrong-import-position

ODD = "z<b>&\"odd'"
DEAD = ("ejected", "probing")  # one after the other, until it lives again
MARKS = "●◆▲○"
# Words that stand on more than one line; a browser may break behind "-" and "/".
BROKEN = """(() => {
  const broken = [];
  const walker = document.createTreeWalker(document.querySelector('main'), NodeFilter.SHOW_TEXT);
  for (let node; (node = walker.nextNode());) {
    if (node.parentElement.closest('svg, title')) continue;
    for (const word of node.data.matchAll(/[^\\s/-]+[/-]?/g)) {
      const range = document.createRange();
      range.setStart(node, word.index);
      range.setEnd(node, word.index + word[0].length);
      if (new Set([...range.getClientRects()].map(each => each.top)).size > 1) broken.push(word[0]);
    }
  }
  return broken;
})()"""
# The contrast of each text with what is behind it (WCAG 2.1, 1.4.3): those below 4.5, in words.
PALE = """(() => {
  const parse = text => (text.match(/[\\d.]+/g) || []).map(Number);
  const light = ([r, g, b]) => [r, g, b].map(v => v / 255).map(v => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
  const out = [];
  for (const node of document.body.querySelectorAll('*')) {
    if (node.checkVisibility && !node.checkVisibility()) continue;
    if (![...node.childNodes].some(child => child.nodeType === 3 && child.data.trim() !== '')) continue;
    if (node.closest('svg')) continue;
    let behind = node, back = [0, 0, 0, 0];
    while (behind && (back = parse(getComputedStyle(behind).backgroundColor), back.length === 4 && back[3] === 0))
      behind = behind.parentElement;
    const a = light(parse(getComputedStyle(node).color)), b = light(back);
    const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
    if (!(ratio >= 4.5)) out.push(`${ratio.toFixed(2)}: ${node.tagName} ${node.textContent.trim().slice(0, 40)}`);
  }
  return out;
})()"""


class PageTest(FaultTest):
    @classmethod
    def setUpClass(cls):
        cls.browser = Browser()
        cls.addClassCleanup(cls.browser.close)

    def setUp(self):
        super().setUp()
        self.start_backends(2)
        # Refuses: that port is one of a backend that has ended.
        self.start_backends(1)
        self.backends[2].kill()
        self.start_daemon()
        self.url = self.daemon.said(r"status page and metrics on (http://\S+/)").group(1)
        client = self.client()

        def known():  # by calls: how many it takes depends on how long the endpoint is in back-off
            for turn in range(60):
                client.call(f"key-{turn}")
            return self.endpoint("echo-3").health.state in DEAD

        eventually(known, "the dead endpoint is known to be dead")

    def write_config(self, cluster="", listener="", top="", endpoints=None):
        lines = "".join(f'      - {{name: {b.name}, address: "{b.address}"}}\n' for b in self.backends)
        odd = ODD.replace("'", "''")
        with open(f"{self.folder}/sluice.yaml", "w", encoding="utf-8") as file:
            file.write(
                f'workers: 1\nlisteners:\n  - {{address: "{self.listen}"}}\n'
                f'admin: {{grpc: "unix:{self.folder}/admin.sock", http: 127.0.0.1:0}}\n'
                f"concurrency: {{max: 100, queue: 10}}\ncache: {{capacity: 1MiB}}\n"
                f"clusters:\n  - name: echo\n    endpoints:\n{lines}"
                f"  - {{name: '{odd}', endpoints: [{{name: '{odd}', address: \"127.0.0.1:1\"}}]}}\n"
                f"routes:\n  - {{cluster: '{odd}', service: a.Odd}}\n"
                f"  - {{cluster: echo, hash_by: {{metadata: x-key}}, cache: {{ttl: 1s, methods: [a.B/Get], shared: true}}}}\n")

    def open(self, path="", **options):
        page = self.browser.page(**options)
        page.open(self.url + path)
        return page

    def assert_quiet(self, page):
        for url in page.requests:
            self.assertTrue(url.startswith(self.url), f"asked for {url}")
        self.assertEqual(set(page.statuses.values()), {200}, page.statuses)
        self.assertEqual(page.complaints, [])

    def test_pages_show_what_there_is_and_ask_for_nothing_elsewhere(self):
        for scripts in (True, False):
            for path in ("", "cluster?name=echo", "cluster?name=z%3Cb%3E%26%22odd%27"):
                with self.subTest(scripts=scripts, path=path):
                    page = self.open(path, scripts=scripts)
                    text = page.text()
                    self.assertIn(ODD if "odd" in path else "echo-3", text)
                    if "odd" not in path:
                        self.assertRegex(text, "▲ (ejected|probing)")
                        self.assertRegex(text, "no connection|Connection refused")
                    self.assertFalse(page.value("document.querySelector('b') !== null"), "a name became a tag")
                    self.assertEqual(page.value("getComputedStyle(document.body).margin"), "0px", "its style is used")
                    self.assert_quiet(page)

    def test_what_is_sent_is_well_formed(self):
        for path in ("", "?page=7", "cluster?name=echo", "cluster?name=z%3Cb%3E%26%22odd%27"):
            with self.subTest(path=path), urllib.request.urlopen(self.url + path, timeout=30) as answer:
                text = answer.read().decode("utf-8")
                html5lib.HTMLParser(strict=True).parse(text)  # raises for what HTML calls a parse error
                xml.etree.ElementTree.fromstring(text)  # and each tag is closed
                self.assertLess(len(text), 100_000)

    def test_the_script_renews_the_page_in_place(self):
        page = self.open()
        page.value("window.mark = 1; document.querySelector('main').id = 'first'")
        self.assertNotIn("draining", page.text())
        self.sluicectl("drain-endpoint", "echo", "echo-1")
        eventually(lambda: "○ draining" in page.text(), "the page shows the change")
        self.assertEqual(page.value("window.mark"), 1, "without being loaded again")
        self.assertEqual(page.loads, 1)
        self.assert_quiet(page)

    def test_what_is_selected_stays(self):
        page = self.open()

        def stays():
            page.value("document.getSelection().selectAllChildren(document.querySelector('h2'))")
            before = len(page.requests)
            page.value("new Promise(done => setTimeout(done, 4500))")  # two periods of the script
            return len(page.requests) == before

        # One that had begun before the selection may end after it.
        self.assertTrue(stays() or stays())
        seen = len(page.requests)
        page.value("document.getSelection().removeAllRanges()")
        eventually(lambda: len(page.requests) > seen, "it goes on")

    def test_a_page_whose_daemon_is_gone_says_so(self):
        page = self.open()
        self.assertNotIn("is old", page.text())
        self.daemon.kill()
        eventually(lambda: "▲ Sluice does not answer: what is shown is old." in page.text(), "the page says that it is old")
        self.assertIn("echo-3", page.text(), "and shows what it had")

    def test_without_scripts_it_is_loaded_again(self):
        page = self.open(scripts=False)
        self.sluicectl("drain-endpoint", "echo", "echo-1")
        eventually(lambda: page.loads >= 2 and "○ draining" in page.text(), "it is loaded again and shows the change")
        self.assert_quiet(page)

    def test_text_stands_out_in_both_schemes(self):
        for scheme in ("light", "dark"):
            for path in ("", "cluster?name=echo"):
                with self.subTest(scheme=scheme, path=path):
                    page = self.open(path, scheme=scheme)
                    self.assertEqual(page.value(PALE), [])
        backs = [self.open(scheme=scheme).value("getComputedStyle(document.body).backgroundColor") for scheme in ("light", "dark")]
        self.assertNotEqual(*backs)

    def test_colours_say_nothing_that_marks_do_not(self):
        page = self.open()
        told = page.value("[...document.querySelectorAll('span.ok, span.note, span.bad, span.off, tr.bad, tr.note')]"
                          ".map(each => each.textContent)")
        self.assertGreater(len(told), 3)
        for text in told:
            self.assertTrue(any(mark in text for mark in MARKS), text)

    def test_a_small_screen_scrolls_tables_only(self):
        for path in ("", "cluster?name=echo"):
            page = self.open(path, width=390)
            self.assertLessEqual(page.value("document.documentElement.scrollWidth"), 390)

    def test_words_are_whole_and_rows_are_low(self):
        for width in (412, 1280):
            for path in ("", "cluster?name=echo"):
                with self.subTest(width=width, path=path):
                    page = self.open(path, width=width)
                    self.assertEqual(page.value(BROKEN), [], "a word is on two lines")
                    self.assertLessEqual(page.value("document.documentElement.scrollWidth"), width)
                    tall = page.value("[...document.querySelectorAll('tr')].filter(each => each.getBoundingClientRect().height > 150)"
                                      ".map(each => each.textContent)")
                    self.assertEqual(tall, [])

    def test_bars_have_a_legend(self):
        page = self.open("cluster?name=echo")
        self.assertRegex(page.text(), "Keys +calls")
        colours = page.value("[...document.querySelectorAll('th i')].map(each => getComputedStyle(each).backgroundColor)")
        self.assertEqual(len(set(colours)), 2)

    def test_no_number_is_a_riddle(self):
        self.assertNotRegex(self.open().text(), r"version \d{10}")

    def test_keys_reach_each_link(self):
        page = self.open()
        page.value("document.querySelector('td a').focus()")
        focused = page.value("document.activeElement.getAttribute('href')")
        main_element = page.value("document.querySelector('main').id = 'first'")
        self.assertEqual(main_element, "first")
        eventually(lambda: page.value("document.querySelector('main').id") == "", "it was renewed")
        self.assertEqual(page.value("document.activeElement.getAttribute('href')"), focused)


if __name__ == "__main__":
    main()
