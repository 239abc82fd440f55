#!/usr/bin/env python3
# tidy_test.py: shows on made-up trees that each rule of tidy.py can fail, and that clean code passes.
import os
import tempfile
import unittest

import clang_format
import mail
import rooms
import rules
import tidy

HEADER = "// Thing: a made-up file for a test.\n#pragma once\n"
CODE = "// Thing: a made-up file for a test.\n"


def write(root, files):
    for path, text in files.items():
        full = os.path.join(root, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "w", encoding="utf-8") as file:
            file.write(text)


def findings(files, exceptions=(), room_exceptions=(), circles=()):
    with tempfile.TemporaryDirectory() as root:
        write(root, files)
        return tidy.Checker(root, list(exceptions), room_exceptions, circles).run()


def pair(one, other):
    """Two headers that include each other."""
    return {f"src/{one}.h": HEADER + f'#include "{other}.h"\n', f"src/{other}.h": HEADER + f'#include "{one}.h"\n'}


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
        self.passes("src/admin/thing.cc", CODE + '#include "net/address.h"\n#include <boost/asio/io_context.hpp>\n')
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
        self.fails("src/config/thing.h", HEADER + '#include "proxy/call/call.h"\n', "layer")

    def test_only_the_connection_of_http2_may_do_io(self):
        self.passes("src/http2/connection/connection.cc", CODE + '#include "net/stream.h"\n')
        self.fails("src/http2/session/session.cc", CODE + '#include "net/stream.h"\n', "layer", "no I/O")

    def test_a_folder_outside_the_table_fails(self):
        self.fails("src/misc/thing.cc", CODE + '#include "base/check.h"\n', "layer", "every folder")

    def test_libraries_stay_in_their_layers(self):
        for path, name in [
            ("src/proxy/thing.cc", "<grpcpp/grpcpp.h>"),
            ("src/server/thing.cc", '"sluice/admin/v1/admin.pb.h"'),
            ("src/runtime/internal/thing.cc", "<boost/asio/io_context.hpp>"),
            ("src/net/thing.cc", "<boost/asio/ip/tcp.hpp>"),
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
        self.fails("docs/thing.md", "See /home/ann/notes\n", "path of one machine")
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
        rows += [f"| {folder} | {room} | x | {', '.join(allowed)} |\n"
                 for folder, inside in rules.ROOMS.items() for room, allowed in inside.items()]
        self.passes("docs/architecture.md", "".join(rows))
        self.fails("docs/architecture.md", "".join(rows).replace(", runtime/waker.h,", ","), "table")
        self.fails("docs/architecture.md", "".join(rows[1:]), "table", "drift apart")
        self.fails("docs/architecture.md", "".join(rows[:-1]), "table", "drift apart")
        self.fails("docs/architecture.md", "".join(rows).replace("| net | tls | x | . |", "| net | tls | x | |"), "table")

    def test_links_must_lead_somewhere(self):
        self.passes("docs/a.md", "# A b!\n[up](#a-b) [web](https://example.org) `[x](code)`\n")
        self.fails("docs/a.md", "[gone](b.md)\n", "link", "leads nowhere")
        self.fails("docs/a.md", "# A\n[gone](#b)\n", "link", "no such heading")
        self.fails("tests/unit/README.md", "[gone](../b.md)\n", "link", "leads nowhere")

    def test_each_page_is_in_the_index(self):
        self.assertEqual(findings({"docs/README.md": "[a](a.md#x)\n", "docs/a.md": "# X\n"}), [])
        found = findings({"docs/README.md": "[a](a.md)\n", "docs/a.md": "# X\n", "docs/b.md": "# Y\n"})
        self.assertEqual(len(found), 1, found)
        self.assertIn("docs/README.md:1: index: does not name b.md", found[0])

    def test_every_include_up_between_rooms_fails_with_its_reason(self):
        for folder, inside in rules.ROOMS.items():
            for room, allowed in inside.items():
                for target in inside:
                    path = f"src/{folder}/thing.h" if room == "." else f"src/{folder}/{room}/thing.h"
                    name = f"{folder}/other.h" if target == "." else f"{folder}/{target}/other.h"
                    text = HEADER + f'#include "{name}"\n'
                    if target == room or target in allowed:
                        self.passes(path, text)
                    else:
                        self.fails(path, text, "room", rules.ROOM_REASONS[folder])

    def test_the_rooms_of_a_folder_have_an_order_and_a_reason(self):
        self.assertEqual(set(rules.ROOMS), set(rules.ROOM_REASONS))
        for inside in rules.ROOMS.values():
            order = list(inside)
            for room, allowed in inside.items():
                self.assertTrue(all(order.index(name) < order.index(room) for name in allowed), room)

    def test_a_room_outside_the_table_fails(self):
        self.fails("src/proxy/attic/thing.h", HEADER + '#include "proxy/options.h"\n', "room", "every room has its place")

    def test_a_private_room_is_its_folders_and_the_tests_own(self):
        text = CODE + '#include "runtime/internal/worker_impl.h"\n'
        self.passes("src/runtime/internal/thing.cc", text)
        self.passes("tests/unit/runtime/thing_test.cc", text)
        self.fails("src/net/thing.cc", text, "room", "only its folder")
        self.fails("cmd/sluiced/main.cc", text, "room", "only its folder")

    def test_an_include_up_that_is_listed_passes_until_it_is_gone(self):
        listed = [("src/proxy/call/thing.h", "proxy/handoff/other.h", "old")]
        text = HEADER + '#include "proxy/handoff/other.h"\n'
        self.assertEqual(findings({"src/proxy/call/thing.h": text}, room_exceptions=listed), [])
        found = findings({"src/proxy/call/thing.h": HEADER}, room_exceptions=listed)
        self.assertIn("stale exception", found[0])

    def test_units_that_include_each_other_fail_unless_they_are_listed(self):
        found = findings(pair("base/one", "base/two"))
        self.assertEqual(len(found), 1, found)
        self.assertIn("circle: base/one <-> base/two", found[0])
        self.assertEqual(findings(pair("base/one", "base/two"), circles=[(["base/one", "base/two"], "old")]), [])
        found = findings(pair("base/one", "base/two"), circles=[(["base/one", "base/six", "base/two"], "old")])
        self.assertEqual(len(found), 1, found)
        self.assertIn("stale exception: base/six", found[0])

    def test_a_source_counts_with_its_header_and_a_chain_is_no_circle(self):
        files = {"src/base/one.h": HEADER, "src/base/one.cc": '#include "base/one.h"\n#include "base/two.h"\n',
                 "src/base/two.h": HEADER + '#include "base/three.h"\n', "src/base/three.h": HEADER}
        self.assertEqual(findings(files), [])
        files["src/base/three.h"] += '#include "base/one.h"\n'
        self.assertIn("circle: base/one <-> base/three <-> base/two", findings(files)[0])

    def test_circles_are_told_apart(self):
        graph = {"a": {"b"}, "b": {"a", "c"}, "c": {"d"}, "d": {"e"}, "e": {"c", "gone"}, "f": {"a", "e"}}
        self.assertEqual(sorted(rooms.circles(graph)), [["a", "b"], ["c", "d", "e"]])

    def test_wide_lines_of_pages_fail_outside_tables_and_code(self):
        wide = "x " * rules.PAGE_WIDTH
        self.passes("docs/thing.md", f"| {wide}|\n```\n{wide}x\n```\n    {wide}x\n" + "x" * 200 + "\n")
        self.fails("docs/thing.md", wide + "x\n", "width", "beside the code")
        self.fails("tests/bench/README.md", wide + "x\n", "width")

    def test_files_that_pages_and_comments_name_must_exist(self):
        there = {"src/base/clock.h": HEADER + "int Now();\n", "src/base/clock.cc": '#include "base/clock.h"\n'}
        for span in ["src/base/clock.h", "base/clock.h", "clock.h", "src/base", "src/base/", "src/base/clock", "base/clock",
                     "clock.h --now", "src/base/{clock}.h", "clock.*", "x.y", "base/clock.{h,cc}"]:
            self.assertEqual(findings(there | {"docs/thing.md": f"See `{span}`.\n"}), [], span)
        for span in ["src/base/watch.h", "base/watch.h", "watch.h", "src/bass", "base/watch", "watch.h --now",
                     "src/base/{clock,watch}.h", "net/clock.h"]:
            found = findings(there | {"docs/thing.md": f"See `{span}`.\n"})
            self.assertEqual(len(found), 1, span)
            self.assertIn("mention: there is no", found[0])
        for comment, count in [("see base/clock.h", 0), ("(clock.cc)", 0), ("as in <linux/if.h>", 0), ("see base/watch.h", 1),
                               ("(watch.cc)", 1), ("docs/gone.md", 1)]:
            found = findings(there | {"src/base/thing.h": HEADER + f"int i;  // {comment}\n"})
            self.assertEqual(len(found), count, comment)
        self.assertEqual(findings({"CHANGELOG.md": "`watch.h` went.\n"}), [])

    def test_functions_that_pages_and_comments_name_must_exist(self):
        there = {"src/base/clock.h": HEADER + "class Clock { void Tick(); };\n", "src/base/hand.h": HEADER + "void Move();\n"}
        for span in ["Clock::Tick", "base::Clock::Tick", "Clock::Tick(now)", "Move()", "std::move()", "std::atomic", "Clock", "Movve"]:
            self.assertEqual(findings(there | {"docs/thing.md": f"See `{span}`.\n"}), [], span)
        for span in ["Clock::Tock", "Clock::Move", "Watch::Tick", "Movve()", "base::Clock::Tock(now)"]:
            found = findings(there | {"docs/thing.md": f"See `{span}`.\n"})
            self.assertEqual(len(found), 1, span)
            self.assertIn("mention: there is no", found[0])
        for comment, count in [("see Clock::Tick", 0), ("Move() does", 0), ("read() does", 0), ("Movve() does", 1), ("Clock::Tock", 1),
                               ("Movve(); clock.Tock();", 0)]:
            found = findings(there | {"src/base/thing.h": HEADER + f'auto s = "//";  // {comment}\n'})
            self.assertEqual(len(found), count, comment)
        # What only a comment names is not there.
        self.assertEqual(len(findings(there | {"src/base/thing.h": HEADER + "// Movve() was.\n"})), 1)

    def test_each_step_of_a_calls_life_leads_to_its_function(self):
        there = {"src/proxy/call/call.cc": CODE + "void Call::Run() {}\n"}
        head = "| step | where |\n|---|---|\n"
        for cell in ["`proxy/call/call.cc:Call::Run`", "`src/proxy/call/call.cc`: `Run()`"]:
            self.assertEqual(findings(there | {rules.LIFE_OF_A_CALL: head + f"| runs | {cell} |\n"}), [], cell)
        for cell in ["`proxy/call/call.cc:Call::Walk`", "`proxy/call/gone.cc:Run`", "somewhere"]:
            found = findings(there | {rules.LIFE_OF_A_CALL: head + f"| runs | {cell} |\n"})
            self.assertTrue(any(": step: " in line for line in found), cell)

    def test_a_step_names_the_class_that_has_the_function(self):
        there = {"src/net/listener.cc": CODE + "struct Listener::State {\n  void OnAccept() {\n  }\n};\nclass Other {\n  void Run();\n};\n"
                 "void Listener::Stop() {\n  Other::Walk();\n}\n"}
        for name in ["Listener::State::OnAccept", "Other::Run", "Listener::Stop", "Other", "Walk"]:
            self.assertEqual(findings(there | {rules.LIFE_OF_A_CALL: f"It does (`net/listener.cc:{name}`).\n"}), [], name)
        for name in ["Listener::OnAccept", "Other::OnAccept", "Listener::State::Run", "Listener::Run", "Other::Walk", "Other::Stop"]:
            found = findings(there | {rules.LIFE_OF_A_CALL: f"It does (`net/listener.cc:{name}`).\n"})
            self.assertEqual(len(found), 1, name)
            self.assertIn(f"net/listener.cc has no {name} ", found[0])

    def test_the_words_of_the_dialect_fail_in_comments_texts_and_names(self):
        for line in ["// who waits is told", "// Nobody sees it", 'log("the list of then");', "TEST(Thing, WhoWaitsIsTold) {}",
                     "TEST(Thing, TellsNobodyElse) {}", "// as everybody does", "// whom it serves", 'log("who = ");']:
            self.fails("src/base/thing.cc", CODE + line + "\n", "dialect", "client, peer, stream")
        self.passes("src/base/thing.cc", CODE + "// A whole connection whose peer left.\n")
        self.passes("src/base/thing.cc", CODE + 'log("audit: who=");\n')  # the audit line's key

    def mail_findings(self, path, code, posted=()):
        found = []
        check = mail.Mail(lambda where, line, rule, what, why: found.append(f"{where}:{line}: {what}"), [("src/a.h", "Item")],
                          [("src/a.h", "Batch")], dict(posted))
        check.add_file(path, code)
        check.finish()
        return found

    def test_a_record_of_mail_has_no_pointer_and_no_reference(self):
        batch = "class Batch final : public runtime::Mail {\n};\n"
        good = "struct Item {\n  uint32_t bytes = 0;\n  MailedPtr<Call> call;\n  uint8_t* payload() { return nullptr; }\n};\n"
        self.assertEqual(self.mail_findings("src/a.h", batch + good), [])
        for member in ["Call* call = nullptr;", "Call* call;", "const Call& call;", "std::vector<int>* list{nullptr};", "void *p;",
                       "Call* const call = nullptr;"]:
            found = self.mail_findings("src/a.h", batch + "struct Item {\n  int a = 0;\n  " + member + "\n};\n")
            self.assertEqual(len(found), 1, (member, found))
            self.assertTrue(found[0].startswith("src/a.h:5: "), found)

    def test_mail_of_a_new_kind_and_a_list_that_is_stale_are_found(self):
        found = self.mail_findings("src/b.h", "struct Letter : Message, Mail {\n};\n")
        self.assertEqual(found, ["src/b.h:1: Letter is mail that rules.py does not know"])
        found = self.mail_findings("src/a.h", "class Batch : public Mail {};\n", {("src/a.h", "old"): "gone"})
        self.assertEqual(len(found), 2, found)  # Item and what `old` excused

    def test_what_is_posted_owns_what_it_names_or_is_listed(self):
        for good in ["[self = shared_from_this()] { self->Go(); }", "[x = std::move(x)] {}", "[] {}",
                     "[w = std::weak_ptr<T>(t), dead = std::shared_ptr<T>(p)] { other([this] {}); }"]:
            self.assertEqual(self.mail_findings("src/b.cc", f"  worker.Post({good});\n"), [])
        for bad, capture in [("[this] {}", "this"), ("[&x]() mutable {}", "&x"), ("[a = p->get(), self = shared_from_this()] {}",
                                                                               "a = p. get()")]:
            self.assertEqual(len(self.mail_findings("src/b.cc", f"\n  w->Post({bad});\n")), 1, bad)
            self.assertEqual(self.mail_findings("src/b.cc", f"w->Post({bad});", {("src/b.cc", capture): "why"}), [])
        self.assertEqual(len(self.mail_findings("src/b.cc", "r.Block(w, [x = std::move(x)] {}, [self] {});\n")), 1)
        self.assertEqual(self.mail_findings("tests/b.cc", "w->Post([this] {});\n"), [])

    def test_what_is_not_formatted_is_named(self):
        tool = clang_format.find_tool()
        self.assertIsNotNone(tool, "clang-format 14: deploy/install-deps.sh")
        with tempfile.TemporaryDirectory() as root:
            write(root, {".clang-format": "BasedOnStyle: Google\n", "src/good.cc": "int i = 0;\n", "tests/bad.h": "int  j;\nint  k;\n",
                         "docs/bad.h": "int  l;\n"})
            self.assertEqual(clang_format.unformatted(tool, root), ["tests/bad.h"])


if __name__ == "__main__":
    unittest.main()
