# The rules of tests/tidy as data: what each layer may include, what is banned where, and why. tidy.py applies them.

# Folder of src/ -> what its files may include besides their own folder: a folder, or one header of it.
# docs/architecture.md shows the same table with each folder's purpose.
LAYERS = {
    "base": [],
    "metrics": ["base"],
    "concurrent": ["base"],
    "cache": ["base", "metrics", "concurrent"],
    "runtime": ["base", "metrics", "concurrent"],
    "sync": ["base", "runtime/waker.h", "runtime/timer_wheel.h", "runtime/cancel.h", "runtime/worker.h"],
    "net": ["base", "metrics", "runtime", "sync"],
    "http2": ["base"],
    "limits": ["base", "metrics", "concurrent", "runtime", "sync"],
    "upstream": ["base", "metrics", "concurrent", "runtime", "sync", "net", "http2", "limits"],
    "proxy": ["base", "metrics", "concurrent", "cache", "runtime", "sync", "net", "http2", "limits", "upstream"],
    "tracing": ["base", "metrics", "concurrent", "proxy"],
    "discovery": ["base", "runtime", "sync", "net/dns/dns_channel.h", "net/dns/dns_reply.h", "net/dns/dns_system.h", "upstream/options.h"],
    "config": ["base", "net/address.h", "net/own_listener.h", "net/tls/options.h", "net/tls/option_table.h", "runtime/options.h", "runtime/option_table.h",
               "http2/options.h", "http2/option_table.h", "limits/options.h", "limits/option_table.h", "upstream/options.h",
               "upstream/option_table.h", "upstream/health/options.h", "upstream/health/option_table.h", "proxy/options.h", "proxy/option_table.h",
               "discovery/options.h", "discovery/option_table.h"],
    "handover": ["base"],
    "admin": ["base", "metrics", "concurrent", "cache", "runtime", "sync", "net", "http2", "limits", "upstream", "proxy",
              "discovery"],
    "server": ["base", "metrics", "concurrent", "cache", "runtime", "sync", "net", "http2", "limits", "upstream", "proxy",
               "tracing", "discovery", "config", "handover", "admin"],
}

# What a breach of a layer's rule would break; printed with it.
LAYER_REASONS = {
    "base": "base is below everything: what it includes, every layer gets",
    "metrics": "metrics are written from everywhere, so they may depend on nothing that writes them",
    "concurrent": "what lies here never suspends and knows no scheduler; a reader must see that from the folder",
    "cache": "the cache knows keys and charges, not HTTP and not tasks",
    "runtime": "the scheduler knows tasks, not what they are for",
    "sync": "a waiter needs someone to wake it, the wheel of its worker for a bound in time and a token for a wish to stop, no more",
    "net": "net moves bytes and does not know which protocol they are",
    "http2": "a session is bytes in, events and bytes out: no I/O, so that it is tested and timed without a runtime; only "
             "connection/ adds I/O",
    "limits": "limits are policy over the primitives and do not know whose calls they admit",
    "upstream": "the way to the backends does not know what a downstream call is",
    "proxy": "the request path takes its options as values: it does not know files (config) or the control plane (admin)",
    "tracing": "an exporter takes records out of rings: it knows no call that is alive, no configuration file and no admin port",
    "discovery": "a source gives lists as values: it knows no cluster, and nothing of what puts its lists in force",
    "config": "options live with their owner; config only parses into them",
    "handover": "what two processes say to each other are values: it knows no server, and nothing of what is handed over",
    "admin": "admin reads what it is given (admin/backend.h); it owns nothing and parses no files",
    "server": "server is the composition root: nothing in src/ includes it",
}

# Files of a layer that may include more: http2's connection adds the I/O that the session does without.
LAYER_EXTENSIONS = [
    ("http2", r"src/http2/(connection/.*|flood/(reports|penalty_box))\.(h|cc)$", ["metrics", "runtime", "sync", "net"]),
]

# The rooms of a folder -> what their files may include of the same folder: a room, or one header of it; each room's own files are
# always allowed. "." is the folder itself, without its rooms. docs/architecture.md shows the same table with each room's purpose.
ROOMS = {
    "runtime": {".": [], "internal": ["."]},
    "net": {"dns": [], ".": ["dns"], "tls": ["."]},
    "http2": {
        ".": [],
        "fields": ["."],
        "frame": ["."],
        "hpack": [".", "fields", "frame"],
        "flood": [".", "fields", "frame", "hpack"],
        "session": [".", "fields", "frame", "hpack", "flood"],
        "connection": [".", "fields", "frame", "hpack", "flood", "session"],
    },
    "upstream": {"health": [], ".": ["health"]},
    "discovery": {".": [], "file": ["."], "dns": ["."], "rpc": ["."], "etcd": [".", "rpc"], "xds": [".", "rpc"]},
    "proxy": {
        "canonical": [],
        ".": ["canonical"],
        "access_log": ["."],
        "tracing": ["."],
        "response_cache": [".", "canonical"],
        "insight": [".", "access_log"],
        "call": [".", "canonical", "access_log", "insight", "tracing", "response_cache"],
        "identity": [".", "call"],
        "handoff": [".", "canonical", "response_cache", "call"],
        "grpc_web": ["."],
        "downstream": [".", "canonical", "tracing", "response_cache", "call", "handoff", "grpc_web"],
    },
}

# What an include up between the rooms of a folder would break; printed with it.
ROOM_REASONS = {
    "runtime": "internal holds the parts of the scheduler; the headers beside it are what others see of them",
    "net": "a plain connection does not know that there is TLS; questions to DNS servers know no connections",
    "http2": "a session is put together from parts that are tested without it; only the connection above it does I/O",
    "upstream": "the judge of health is a value: it is told counts and the time, and knows no endpoint, pool or socket",
    "discovery": "the follower drives any source, and is made with one",
    "proxy": "a call knows what it stands on, not which connection, worker or cache of answers brought it there",
}

# Rooms that only their own folder and the tests may look into.
PRIVATE_ROOMS = ["runtime/internal"]

# Includes up that there are still: (file, included header, reason). All of these go; none may be added.
ROOM_EXCEPTIONS = []

# Units (a header and the source beside it) of a folder that include each other in a circle, and why. A circle must be within one of
# these, and each unit named must be in one: what has left a circle is taken off its list.
CIRCLES = [
    (["config/config", "config/parsers"],
     "config.h says what reading a file gives, which the parsers fill; config.cc, which offers the reading, asks them"),
    (["metrics/registry", "metrics/registry_impl"],
     "registry_impl.h has what is behind Registry's pointer, for the two sources that share it"),
    (["upstream/least_request", "upstream/load_balancer", "upstream/round_robin"],
     "the factory beside LoadBalancer names every policy, and every policy is a LoadBalancer"),
]

# (name, pattern of the included name, where it is allowed, reason)
LIBRARIES = [
    ("grpc", r"^(grpcpp|grpc|google/protobuf|google/rpc)/|^sluice/(admin|echo|handover)/|^(envoy|etcd|opentelemetry)/", r"^(src/admin|cmd|tests)/|^src/config/(descriptor_set|xds_bootstrap)\.cc$|^src/(discovery|tracing)/.*\.cc$|^src/handover/|^src/server/(handover_|processes|leaving)",
     "gRPC and protobuf are the control plane: on the data path they cost more than a proxied call may; config reads a "
     "descriptor set and a bootstrap file once, at load"),
    ("asio", r"^boost/(asio|beast)", r"^src/admin/.*\.cc$|^tests/",
     "Asio serves the control side, in its .cc files; the workers' reactor is our own (docs/scheduler.md)"),
    ("c-ares", r"^ares", r"^src/net/dns/.*\.cc$|^tests/", "above it the answers of DNS servers are values"),
    ("openssl", r"^openssl/", r"^src/net/|^src/proxy/identity/.*\.cc$|^tests/",
     "TLS ends in net: no layer above sees it; signatures of tokens are checked in identity"),
    ("nlohmann-json", r"^nlohmann/", r"^src/proxy/identity/strict_json\.cc$|^tests/",
     "a header that costs seconds to compile; what it reads is a tree of our own"),
    ("yaml-cpp", r"^yaml-cpp/", r"^src/config/|^src/server/state_file\.cc$",
     "files are parsed at the edge: nobody else sees YAML; the state file is the server's own"),
    ("CLI11", r"^CLI/", r"^cmd/.*\.cc$", "command lines are the programs' own, and its header costs seconds to compile"),
    ("spdlog", r"^spdlog/", r"^src/base/|^src/server/|^cmd/sluiced/|^tests/",
     "base/log.h is how a layer logs; sinks are set up in server"),
    ("nghttp2", r"^nghttp2/", r"^tests/", "libnghttp2 is the oracle of tests, not a run-time dependency"),
    ("alternatives", r"^(rocksdb|urcu)/|^urcu", r"^tests/bench/", "what benchmarks compare with is not a dependency"),
    ("test code", r"^(gtest|gmock|benchmark)/|^tests/|_test\.h$", r"^tests/", "what ships does not depend on test code"),
]

# (name, pattern in a line of code without comments and strings, where it applies, reason)
BANNED = [
    ("parks a worker", r"\b(condition_variable|sleep_for|sleep_until|usleep|nanosleep)\b", r"^src/(?!runtime/)",
     "it parks a worker, and every task queued behind it waits too; suspend with sync/ or runtime/"),
    ("thread", r"\bstd::j?thread\b(?!::)|\bstd::async\b|\bpthread_create\b", r"^src/(?!runtime/)",
     "threads are the runtime's: a thread made elsewhere is invisible to `workers` and to the blocking monitor"),
    ("thread_local in a header", r"\bthread_local\b", r"^src/.*\.h$",
     "inlined into a coroutine its address may be kept over a suspension, when the task is on another worker already"),
    ("fence", r"\batomic_thread_fence\b", r"^src/", "TSan does not model fences: use ordered operations"),
    ("atomic shared_ptr", r"\batomic<\s*std::shared_ptr", r"^src/", "slow, and reported as a race by TSan on GCC 12"),
    ("default order", r"\.(load\(\s*\)|(store|exchange|fetch_(add|sub|or|and))\([^,()]*\))(?=\s*[;)&|=<>!+\-*/?:])",
     r"^src/(base|metrics|concurrent|runtime|sync|net|http2|upstream)/",
     "orders are spelled out, so that a reader can look for the partner"),
    ("clock", r"\b(steady|high_resolution)_clock::now\b", r"^src/(?!base/clock|runtime/)",
     "time is a parameter (base/clock.h), read once per loop turn"),
    ("wall clock", r"\bsystem_clock::now\b|\bgettimeofday\b|\bCLOCK_REALTIME\b|[^_\w.>]time\((nullptr|NULL|0)\)", r"^src/",
     "it jumps: only what has a date may look at it (docs/reliability.md)"),
    ("assert", r"(?<![_\w])assert\(|\babort\(\)|\bexit\(", r"^src/(?!base/check)",
     "SLUICE_CHECK says what was expected and is on in release builds too"),
    ("throw", r"\bthrow\b", r"^src/", "errors are values (base/error.h); no exception crosses an interface"),
    ("console", r"\bstd::c(out|err)\b|\b(printf|puts)\(", r"^src/(?!base/check)", "logs go through base/log.h"),
    ("rand", r"\bs?rand\(|\brandom_device\b", r"^src/(?!base/random)", "base/random.h, so that a seed can be printed and replayed"),
    ("sleep in a test", r"\b(sleep_for|sleep_until|usleep|nanosleep)\b", r"^tests/",
     "a test waits for a state it can observe, not for time to pass (tests/support)"),
    ("disabled test", r"\bDISABLED_", r"^tests/",
     "a test that never runs shows nothing; one that cannot run in a sanitized build may skip itself there"),
]

# Records that go from worker to worker as bytes: (file, struct). No member is a raw pointer or a reference.
MAIL_RECORDS = [("src/proxy/handoff/channel.h", "Item"), ("src/http2/fields/field.h", "Field")]
# Classes that are mail: (file, class). The records of each are above.
MAIL_CLASSES = [("src/proxy/handoff/channel.h", "Batch")]
# What functions that are posted to a worker, or to a helper thread and back, capture without owning it by its spelling: (file, capture)
# -> why it is there when the function runs. The runtime ends before the workers' fronts and contexts do (Server::TearDown).
_FRONT = "a worker's front or context: it goes after the runtime has ended"
_SHARED = "a shared pointer, or a value that holds them"
_WAITED = "the caller waits until the function has run"
_VALUE = "a value"
POSTED = {
    ("src/discovery/rpc/rpc_stream.cc", "self = self_"): _SHARED,
    ("src/discovery/xds/ads_client.cc", "watch"): _SHARED,
    ("src/net/dialer.cc", "found"): _SHARED,
    ("src/net/dialer.cc", "a = address"): _VALUE,
    ("src/net/dns/dns_lookup.cc", "looked"): _SHARED,
    ("src/net/dns/dns_lookup.cc", "name = host"): _VALUE,
    ("src/net/tls/handshake.cc", "failure"): _VALUE,
    ("src/net/tls/handshake.cc", "self"): _SHARED,
    ("src/net/tls/handshake.cc", "progress"): _SHARED,
    ("src/net/tls/handshake.cc", "ssl = engine. ssl.get()"):
        "the function beside it, which is destroyed on the worker after this one has run, owns the handshake",
    ("src/proxy/downstream/listener.cc", "target"): _FRONT,
    ("src/proxy/downstream/listener.cc", "home"): _FRONT,
    ("src/proxy/downstream/listener.cc", "owned"): _SHARED,
    ("src/proxy/downstream/listener.cc", "options = options"): _SHARED,
    ("src/proxy/downstream/listener.cc", "options = options_"): _SHARED,
    ("src/proxy/downstream/listener.cc", "open = open"): _SHARED,
    ("src/proxy/downstream/listener.cc", "handshakes = handshakes"): _SHARED,
    ("src/proxy/downstream/listener.cc", "state = state_"): _SHARED,
    ("src/proxy/downstream/listener.cc", "shared"): _VALUE,
    ("src/proxy/downstream/overload.cc", "other"): _FRONT,
    ("src/proxy/grpc_web/web_stream.cc", "end = end_"): _SHARED,
    ("src/proxy/response_cache/collector.cc", "anchor"): _SHARED,
    ("src/runtime/blocking_call.h", "state = state_"): _SHARED,
    ("src/server/clusters.cc", "worker"): _FRONT,
    ("src/server/clusters.cc", "endpoint"): _SHARED,
    ("src/server/health_task.cc", "context"): _FRONT,
    ("src/server/health_task.cc", "stop"): _SHARED,
    ("src/server/health_task.cc", "cluster"): _SHARED,
    ("src/server/health_task.cc", "ask"): _SHARED,
    ("src/server/health_task.cc", "endpoint"): _SHARED,
    ("src/server/server.cc", "this"): "the server: its destructor ends the runtime first",
    ("src/server/server.cc", "front = front.get()"): _FRONT,
    ("src/server/server.cc", "spread"): _VALUE,
    ("src/server/server.cc", "&fn"): _WAITED,
    ("src/server/server.cc", "&done"): _WAITED,
    ("src/server/server_upgrade.cc", "front = front.get()"): _FRONT,
}

# Applied to every line of every text file, comments included.
LINE_RULES = [
    ("unfinished", r"\b(TODO|FIXME|XXX)\b", r"^(src|cmd|proto|config|tests|deploy|docs|cmake|README)",
     "what is not done is written down as an issue, not left in the code"),
    ("tab", r"\t", r"\.(h|cc|py|sh|md|yaml|proto|cmake|txt)$", "indent with spaces"),
    ("trailing space", r"[ \t]+$", r"\.(h|cc|py|sh|md|yaml|proto|cmake|txt)$|^tests/run|^\.ci/", "it is noise in every diff"),
    ("path of one machine", r"(?<![\w.])/(home|work|root)/\w", r".", "the project must mean the same on every machine"),
]

# Words that stand for a party without naming it, where a sentence should have a subject (house style: client, peer, stream, waiter).
# `who=` is no prose: it is a key of the audit line, which tools look for.
DIALECT = r"\b(who(?!=)|whom|whoever|nobody|somebody|anybody|everybody|someone|anyone|everyone|what comes|of then|of now)\b"
# The same in a test's name.
DIALECT_NAMES = r"(Who|Whom|Whoever|Nobody|Somebody|Anybody|Everybody)(?=[A-Z])|WhatComes|OfThen(?![a-z])|OfNow(?![a-z])"

# The widest a line of a page may be, outside tables and code.
PAGE_WIDTH = 120
# What it names must be found, and each row of its tables names something: `proxy/call/call.cc:Call::Run`.
LIFE_OF_A_CALL = "docs/life-of-a-call.md"
# Pages that tell what was: the names of then are right there.
PAGES_OF_THE_PAST = r"^CHANGELOG\.md$"
# Files that pages and comments name and that are not in the tree: generated, of another project, or an example.
FILES_ELSEWHERE = r"\.pb\.(h|cc)$|^(shop\.proto|bench\.py)$|^NAME_|/(NAME|PRESET|TARGET)"
# Scopes and functions that are not ours: of the language and of libraries.
NAMES_ELSEWHERE = {"std", "absl", "boost", "grpc", "ssl", "testing", "asio", "io_context"}

# The longest a source file may be: one idea a file, and a reader can hold it. A test may list more cases.
LINES_MAX = 400
TEST_LINES_MAX = 600

# (path pattern, rule's name, reason). One that excuses nothing is reported: it is stale.
EXCEPTIONS = [
    (r"^tests/tidy/(rules|tidy_test)\.py$", "dialect", "the checker and its test spell the words they look for"),
    (r"^tests/tidy/", "unfinished", "the checker and its test spell the words they look for"),
    (r"^tests/tidy/tidy_test\.py$", "path of one machine", "the checker's test spells what it looks for"),
    (r"^src/base/slice\.cc$", "throw", "out of memory has no value to return; it ends the process"),
    (r"^src/concurrent/doubly_buffered_data\.h$", "throw", "passes on what the caller's own function threw"),
    (r"^src/config/yaml_tree\.cc$", "throw", "yaml-cpp's event handlers can only be left by throwing; it is caught in the same file"),
    (r"^src/http2/fields/intern_table\.cc$", "rand", "seeds a hash table so that a peer cannot aim at one bucket; nothing to replay"),
    (r"^src/net/unix_socket_claim\.cc$", "parks a worker", "opening a listener is for the threads that start and reload the daemon"),
    (r"^src/admin/control_loop\.(h|cc)$", "thread", "the control side's own threads are not workers"),
    (r"^src/server/server\.(h|cc)$", "thread", "the control thread: reload and drain wait for workers, so they cannot run on one"),
    (r"^src/server/(server|life_cycle|listeners|server_reload)\.(h|cc)$", "parks a worker", "parks the control thread and threads that wait for the end, never a worker"),
    (r"^src/proxy/access_log/log_thread\.cc$", "wall clock", "the time of a log line"),
    (r"^src/proxy/access_log/log_thread\.cc$", "thread", "the log's own thread: what it writes to may be slow, and no worker may wait for it"),
    (r"^src/tracing/exporter\.(h|cc)$", "thread", "what it sends to may hang, and no worker may wait for it"),
    (r"^src/tracing/exporter\.cc$", "wall clock", "the times of spans"),
    (r"^src/admin/admin_service\.cc$", "wall clock", "whether a client's certificate is over"),
    (r"^src/admin/admin_server\.cc$", "wall clock", "gRPC takes its deadlines so"),
    (r"^src/admin/csds_service\.cc$", "wall clock", "when a resource was sent, as its messages say it; and whether a client's certificate is over"),
    (r"^src/server/state_file\.cc$", "wall clock", "when a list was saved, for the next process to say"),
    (r"^src/server/certificate_view\.cc$", "wall clock", "certificates and tokens: a date that is over"),
    (r"^src/server/(server|life_cycle)\.(h|cc)$", "clock", "uptime and the drain's end, outside the loop's turns"),
    (r"^tests/bench/overload/overload\.cc$", "sleep in a test", "its backend works and its open-loop client sends by the clock: that is what is measured"),
    (r"^tests/integration/support/wait_until\.h$", "sleep in a test", "the one place that looks again and again at a state it can observe"),
]
