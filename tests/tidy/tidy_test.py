#!/usr/bin/env python3
# tidy_test.py: shows on made-up trees that each rule of tidy.py can fail, and that clean code passes.
import os
import tempfile
import unittest

import rules
import tidy

HEADER = "// Thing: a made-up file for a test.\n#pragma once\n"
CODE = "// Thing: a made-up file for a test.\n"


def findings(files, exceptions=()):
    with tempfile.TemporaryDirectory() as root:
        for path, text in files.items():
            full = os.path.join(root, path)
            os.makedirs(os.path.dirname(full), exist_ok=True)
            with open(full, "w", encoding="utf-8") as file:
                file.write(text)
        return tidy.Checker(root, list(exceptions)).run()


class TidyTest(unittest.TestCase):
    def passes(self, path, text):
        self.assertEqual(findings({path: text}), [])

    def fails(self, path, text, rule, reason=""):
        found = findings({path: text})
        self.assertEqual(len(found), 1, found)
        self.assertIn(f": {rule}: ", found[0])
        self.assertIn(reason, found[0])

    def test_clean_files_pass(self):
        self.passes("src/base/thing.h", HEADER)
        self.passes("src/net/thing.cc", CODE + '#include "runtime/worker.h"\n#include <boost/asio/io_context.hpp>\n')
        self.passes("tests/unit/net/thing_test.cc", CODE + "#include <gtest/gtest.h>\n")

    def test_every_forbidden_pair_of_layers_fails_with_its_reason(self):
        for folder, allowed in rules.LAYERS.items():
            for target in rules.LAYERS:
                text = CODE + f'#include "{target}/no_such_header.h"\n'
                if target == folder or target in allowed:
                    self.passes(f"src/{folder}/thing.cc", text)
                else:
                    self.fails(f"src/{folder}/thing.cc", text, "layer", rules.LAYER_REASONS[folder])

    def test_every_layer_has_a_reason_and_none_is_above_itself(self):
        self.assertEqual(list(rules.LAYERS), list(rules.LAYER_REASONS))
        order = list(rules.LAYERS)
        for folder, allowed in rules.LAYERS.items():
            below = {order.index(name.split("/")[0]) for name in allowed}
            self.assertTrue(all(index < order.index(folder) for index in below), folder)

    def test_one_allowed_header_does_not_open_its_folder(self):
        self.passes("src/sync/thing.h", HEADER + '#include "runtime/waker.h"\n')
        self.fails("src/sync/thing.h", HEADER + '#include "runtime/runtime.h"\n', "layer", "a waiter needs someone")
        self.passes("src/config/thing.h", HEADER + '#include "proxy/options.h"\n')
        self.fails("src/config/thing.h", HEADER + '#include "proxy/call.h"\n', "layer")

    def test_only_the_connection_of_http2_may_do_io(self):
        self.passes("src/http2/connection.cc", CODE + '#include "net/stream.h"\n')
        self.fails("src/http2/session.cc", CODE + '#include "net/stream.h"\n', "layer", "no I/O")

    def test_a_folder_outside_the_table_fails(self):
        self.fails("src/misc/thing.cc", CODE + '#include "base/check.h"\n', "layer", "every folder")

    def test_libraries_stay_in_their_layers(self):
        for path, name in [
            ("src/proxy/thing.cc", "<grpcpp/grpcpp.h>"),
            ("src/server/thing.cc", '"sluice/admin/v1/admin.pb.h"'),
            ("src/upstream/thing.h", "<boost/asio/ip/tcp.hpp>"),
            ("src/admin/thing.h", "<boost/beast/http.hpp>"),
            ("src/http2/thing.cc", "<openssl/ssl.h>"),
            ("src/server/thing.cc", "<yaml-cpp/yaml.h>"),
            ("src/net/thing.cc", "<spdlog/spdlog.h>"),
            ("src/http2/thing.cc", "<nghttp2/nghttp2.h>"),
            ("src/base/thing.cc", "<gtest/gtest.h>"),
        ]:
            text = (HEADER if path.endswith(".h") else CODE) + f"#include {name}\n"
            self.fails(path, text, "library")

    def test_banned_calls_fail(self):
        for path, line, rule in [
            ("src/proxy/thing.cc", "std::condition_variable c;", "parks a worker"),
            ("src/proxy/thing.cc", "std::this_thread::sleep_for(1s);", "parks a worker"),
            ("src/net/thing.cc", "std::thread t;", "thread"),
            ("src/base/thing.h", "thread_local int i;", "thread_local in a header"),
            ("src/sync/thing.cc", "std::atomic_thread_fence(std::memory_order_seq_cst);", "fence"),
            ("src/sync/thing.cc", "std::atomic<std::shared_ptr<int>> p;", "atomic shared_ptr"),
            ("src/sync/thing.cc", "return count.load();", "default order"),
            ("src/sync/thing.cc", "count.fetch_add(1);", "default order"),
            ("src/http2/thing.cc", "auto now = std::chrono::steady_clock::now();", "clock"),
            ("src/http2/thing.cc", "auto now = std::chrono::system_clock::now();", "wall clock"),
            ("src/http2/thing.cc", "now = ::time(nullptr);", "wall clock"),
            ("src/http2/thing.cc", "assert(x);", "assert"),
            ("src/http2/thing.cc", "throw 1;", "throw"),
            ("src/http2/thing.cc", "std::cerr << 1;", "console"),
            ("src/http2/thing.cc", "return rand();", "rand"),
            ("tests/unit/net/thing_test.cc", "std::this_thread::sleep_for(1s);", "sleep in a test"),
            ("tests/unit/net/thing_test.cc", "TEST(Thing, DISABLED_Works) {}", "disabled test"),
        ]:
            text = (HEADER if path.endswith(".h") else CODE) + line + "\n"
            with self.subTest(line=line):
                self.fails(path, text, rule)

    def test_every_banned_call_is_tried_above(self):
        with open(__file__, encoding="utf-8") as file:
            text = file.read()
        for name, *_ in rules.BANNED + rules.LINE_RULES:
            self.assertIn(f'"{name}"', text)

    def test_the_runtime_may_park_and_static_asserts_are_no_asserts(self):
        self.passes("src/runtime/thing.cc", CODE + "std::condition_variable c;\nstatic_assert(true);\n")

    def test_comments_and_strings_are_not_code(self):
        self.passes("src/proxy/thing.cc", CODE + '// never sleep_for\n/* throw\n throw */\nauto s = "std::cout";\n')

    def test_a_file_without_purpose_fails(self):
        self.fails("src/base/thing.cc", '#include "base/check.h"\n', "purpose")
        self.fails("deploy/thing.sh", "#!/bin/sh\nset -e\n", "purpose")
        self.passes("deploy/thing.sh", "#!/bin/sh\n# Does nothing, on purpose.\n")

    def test_the_header_tells_what_its_source_is_for(self):
        self.assertEqual(findings({"src/base/thing.h": HEADER, "src/base/thing.cc": '#include "base/thing.h"\n'}), [])
        self.assertEqual(findings({"src/base/thing.h": HEADER, "tests/unit/base/thing_test.cc": "int i;\n"}), [])
        self.fails("tests/unit/base/thing_test.cc", "int i;\n", "purpose")

    def test_a_header_without_guard_fails(self):
        self.fails("src/base/thing.h", CODE, "guard")

    def test_unfinished_work_tabs_spaces_and_foreign_paths_fail(self):
        self.fails("src/base/thing.cc", CODE + "// TODO: later\n", "unfinished")
        self.fails("src/base/thing.cc", CODE + "\tint i;\n", "tab")
        self.fails("src/base/thing.cc", CODE + "int i; \n", "trailing space")
        self.fails("docs/thing.md", "See /home/someone/notes\n", "path of one machine")
        self.fails("src/base/thing.cc", CODE + "int i;", "end of file")

    def test_a_long_file_fails_unless_it_is_listed(self):
        text = CODE + "int i;\n" * rules.LINES_MAX
        self.fails("src/base/thing.cc", text, "file length")
        self.assertEqual(findings({"src/base/thing.cc": text}, [(r"thing\.cc$", "file length", "a table")]), [])

    def test_an_exception_that_excuses_nothing_fails(self):
        found = findings({"src/base/thing.cc": CODE}, [(r"thing\.cc$", "throw", "old")])
        self.assertIn("stale exception", found[0])

    def test_the_page_must_show_the_table_that_is_held(self):
        rows = [f"| {layer} | x | {', '.join(allowed)} |\n" for layer, allowed in rules.LAYERS.items()]
        self.passes("docs/architecture.md", "".join(rows))
        self.fails("docs/architecture.md", "".join(rows).replace(", runtime/waker.h,", ","), "table")
        self.fails("docs/architecture.md", "".join(rows[1:]), "table", "drift apart")

    def test_links_must_lead_somewhere(self):
        self.passes("docs/a.md", "# A b!\n[up](#a-b) [web](https://example.org) `[x](code)`\n")
        self.fails("docs/a.md", "[gone](b.md)\n", "link", "leads nowhere")
        self.fails("docs/a.md", "# A\n[gone](#b)\n", "link", "no such heading")


if __name__ == "__main__":
    unittest.main()
