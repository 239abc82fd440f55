// sluicectl from outside: the real program against a real admin server with a fake backend behind it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "admin/admin_server.h"
#include "program.h"

namespace sluice::admin {
namespace {

using testing::HasSubstr;
using testing::StartsWith;
using upstream::EndpointChange;
using Kind = EndpointChange::Kind;

class Sluicectl : public testing::Test {
 protected:
  void SetUp() override {
    base::Result<std::unique_ptr<AdminServer>> server = AdminServer::Start("unix:" + (dir_ / "s"), backend_);
    ASSERT_TRUE(server.ok()) << server.error().detail;
    server_ = std::move(*server);
  }

  ProgramResult Ctl(std::vector<std::string> words) {
    words.insert(words.begin(), SLUICECTL_PATH);
    return RunProgram(words, {"SLUICE_ADMIN=" + server_->address(), "http_proxy=http://127.0.0.1:1"});
  }

  TempDir dir_;
  FakeBackend backend_;
  std::unique_ptr<AdminServer> server_;
};

TEST_F(Sluicectl, StatusIsAnAlignedList) {
  const ProgramResult result = Ctl({"status"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(result.out,
            "Version          1.2.3\n"
            "State            ready\n"
            "Configuration    /etc/sluice.yaml\n"
            "Process          4242\n"
            "Uptime           1h 2m\n"
            "Workers          2\n"
            "Connections      5\n"
            "Calls in flight  6\n");
}

TEST_F(Sluicectl, ClustersAndEndpointsAreTables) {
  EXPECT_EQ(Ctl({"clusters", "users"}).out,
            "CLUSTER  POLICY     VERSION  DIGEST            ENDPOINTS  WELL  SOURCE\n"
            "users    ring_hash        7  0000000000abcdef          2     2  file\n");
  EXPECT_EQ(Ctl({"endpoints", "users"}).out,
            "NAME  ADDRESS         STATE    CONNECTION  WEIGHT  SHARE  IN-FLIGHT  CALLS  FAILURES  CONNECTIONS\n"
            "a     10.0.0.1:50051  active   connected        1  25.0%          3    100         2            4\n"
            "b     10.0.0.2:50051  active   idle             3  75.0%          0     50         0            0\n"
            "old   10.0.0.3:50051  removed  connected        1   0.0%          1      9         0            1\n");
  // A name cannot move the reader's cursor.
  EXPECT_THAT(Ctl({"endpoints", "<b>&\"odd'"}).out, HasSubstr("x?[31m"));
}

TEST_F(Sluicectl, PrintsJsonWithTheNamesOfTheProto) {
  const ProgramResult result = Ctl({"--json", "endpoints", "users"});
  EXPECT_EQ(result.code, 0);
  for (const char* part : {"\"version\": \"7\"", "\"digest_hex\": \"0000000000abcdef\"", "\"overridden\": false",
                           "\"in_flight\": \"3\"", "\"state\": \"STATE_ACTIVE\"", "\"share\": 0.25"}) {
    EXPECT_THAT(result.out, HasSubstr(part));
  }
}

TEST_F(Sluicectl, ChangesEndpoints) {
  ProgramResult result = Ctl({"add", "users", "c=10.0.0.7:50051@2", "10.0.0.8:50051", "--if-version", "7"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(result.out, "users is at version 8, digest 0000000000001234; 12.5% of keys moved\n");
  EndpointChange change = backend_.last_change();
  EXPECT_EQ(change.kind, Kind::kAdd);
  EXPECT_EQ(change.expected_version, 7u);
  ASSERT_EQ(change.endpoints.size(), 2u);
  EXPECT_EQ(change.endpoints[0].name + " " + change.endpoints[0].address, "c 10.0.0.7:50051");
  EXPECT_EQ(change.endpoints[0].weight, 2);
  EXPECT_EQ(change.endpoints[1].name + " " + change.endpoints[1].address, " 10.0.0.8:50051");
  EXPECT_EQ(change.endpoints[1].weight, 1);

  EXPECT_THAT(Ctl({"replace", "users", "c=h:1", "--preview"}).out, HasSubstr("would be at version 9"));
  EXPECT_TRUE(backend_.last_change().preview);
  const std::pair<std::vector<std::string>, Kind> others[] = {
      {{"replace", "users", "c=h:1"}, Kind::kReplace},      {{"remove", "users", "c"}, Kind::kRemove},
      {{"reweight", "users", "c@5"}, Kind::kReweight},      {{"drain-endpoint", "users", "c"}, Kind::kDrain},
      {{"undrain-endpoint", "users", "c"}, Kind::kUndrain},
  };
  for (const auto& [words, kind] : others) {
    EXPECT_EQ(Ctl(words).code, 0) << words[0];
    EXPECT_EQ(backend_.last_change().kind, kind) << words[0];
    EXPECT_EQ(backend_.last_change().endpoints.at(0).name, "c");
  }
}

TEST_F(Sluicectl, AddsListsAndRemovesFaults) {
  EXPECT_EQ(Ctl({"fault", "list"}).out, "no faults\n");
  ProgramResult result = Ctl({"fault", "add", "users", "--delay", "100ms", "--percent", "10", "--for", "60s"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(result.out, "fault 1: route users: delay 100ms, 10% of the calls, for 60s\n");
  EXPECT_EQ(Ctl({"fault", "add", "p.S/M", "--abort", "UNAVAILABLE", "--for", "5m"}).code, 0);
  EXPECT_EQ(Ctl({"fault", "add", "users", "--reset-after", "3", "--for", "1s"}).code, 0);
  EXPECT_EQ(Ctl({"fault", "list"}).out,
            "ID  OF           DOES               PERCENT  LEFT  CALLS\n"
            " 1  route users  delay 100ms             10   60s      0\n"
            " 2  p.S/M        abort UNAVAILABLE      100  300s      0\n"
            " 3  route users  reset after 3          100    1s      0\n");
  EXPECT_THAT(Ctl({"--json", "fault", "list"}).out, HasSubstr("\"reset_after\": 3"));
  EXPECT_EQ(Ctl({"__complete", "fault", "remove", ""}).out, "1\n2\n3\n");
  EXPECT_EQ(Ctl({"fault", "remove", "2"}).out, "removed\n");
  result = Ctl({"fault", "remove", "2"});
  EXPECT_EQ(result.code, 1);
  EXPECT_EQ(result.err, "sluicectl: no fault 2, or it has ended\n  `sluicectl fault list` shows what there is\n");
  EXPECT_EQ(Ctl({"fault", "add", "unknown", "--delay", "1s", "--for", "1s"}).code, 1);
}

TEST_F(Sluicectl, AFaultThatCannotBeRightIsRefused) {
  const auto refused = [&](std::vector<std::string> flags) {
    std::vector<std::string> words = {"fault", "add", "users"};
    words.insert(words.end(), flags.begin(), flags.end());
    const ProgramResult result = Ctl(words);
    EXPECT_EQ(result.code, 1) << result.out;
    return result.err;
  };
  EXPECT_THAT(refused({"--abort", "NOPE", "--for", "1s"}), HasSubstr("abort: must be a gRPC code but OK"));
  EXPECT_THAT(refused({"--abort", "OK", "--for", "1s"}), HasSubstr("abort: must be a gRPC code but OK"));
  EXPECT_THAT(refused({"--abort", "ABORTED", "--reset-after", "1", "--for", "1s"}), HasSubstr("one of both"));
  EXPECT_THAT(refused({"--delay", "1s", "--for", "61m"}), HasSubstr("for: is needed"));
  EXPECT_THAT(refused({"--delay", "61m", "--for", "1h"}), HasSubstr("delay: must be at most an hour"));
  EXPECT_THAT(refused({"--delay", "1s", "--percent", "0", "--for", "1s"}), HasSubstr("percent: must be above 0"));
  EXPECT_THAT(refused({"--delay", "1s", "--percent", "101", "--for", "1s"}), HasSubstr("percent: must be above 0"));
}

// Most likely a slip: the last endpoint, or all those with keys.
TEST_F(Sluicectl, TakingAwayAllKeysNeedsForce) {
  backend_.set_moved_share(1);
  for (const char* command : {"remove", "drain-endpoint"}) {
    const ProgramResult refused = Ctl({command, "users", "a"});
    EXPECT_EQ(refused.code, 1);
    EXPECT_EQ(refused.out, "");
    EXPECT_THAT(refused.err, HasSubstr("takes away the endpoints of all keys of users; nothing was changed"));
    EXPECT_TRUE(backend_.last_change().preview);
    EXPECT_EQ(Ctl({command, "users", "a", "--preview"}).code, 0);
    EXPECT_EQ(Ctl({command, "users", "a", "--force"}).code, 0);
    EXPECT_FALSE(backend_.last_change().preview);
  }
  EXPECT_EQ(Ctl({"replace", "users", "c=h:1"}).code, 0) << "others take the keys";
  backend_.set_moved_share(0.5);
  EXPECT_EQ(Ctl({"remove", "users", "a"}).code, 0);
  EXPECT_FALSE(backend_.last_change().preview);
}

// It is there, so "is it running?" would lead astray.
TEST_F(Sluicectl, ASocketOfAnotherUserIsNamedAsThat) {
  const std::string path = server_->address().substr(5);
  std::vector<std::string> words = {SLUICECTL_PATH, "status"};
  if (::geteuid() == 0) {
    ASSERT_EQ(::chmod(path.substr(0, path.rfind('/')).c_str(), 0755), 0);
    words[0] = dir_ / "sluicectl";  // which that user can reach
    std::filesystem::copy_file(SLUICECTL_PATH, words[0]);
    words.insert(words.begin(), {"/usr/bin/setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"});
  } else {
    ASSERT_EQ(::chmod(path.c_str(), 0), 0);
  }
  const ProgramResult result = RunProgram(words, {"SLUICE_ADMIN=" + server_->address()});
  EXPECT_EQ(result.code, 3);
  EXPECT_THAT(result.err, StartsWith("sluicectl: " + server_->address() + ": permission denied\n"));
}

TEST_F(Sluicectl, HealthIsTwoTables) {
  using State = upstream::HealthState;
  using std::chrono::milliseconds;
  backend_.set_health({State::kEjected, milliseconds(62'500), "5 failures in a row: UNAVAILABLE", "refused",
                       milliseconds(1'250), 0, "", milliseconds(12'400)},
                      {{milliseconds(62'600), "a", State::kUp, State::kSuspect, "5 failures in a row: UNAVAILABLE"}});
  EXPECT_EQ(Ctl({"endpoints", "users", "--why"}).out,
            "NAME  HEALTH     FOR  SHARE  PROBE-IN  WHY                               LAST-ERROR\n"
            "a     ejected  1m 2s   0.0%      1.2s  5 failures in a row: UNAVAILABLE  refused, 12s ago\n"
            "\n"
            "  AGO  NAME  FROM  TO       WHY\n"
            "1m 2s  a     up    suspect  5 failures in a row: UNAVAILABLE\n");
  EXPECT_THAT(Ctl({"--json", "endpoints", "users"}).out, HasSubstr("\"probe_in_ms\": \"1250\""));
}

TEST_F(Sluicectl, WhatAHealthServiceSaysIsAColumn) {
  upstream::HealthView view;
  view.state = upstream::HealthState::kNotServing;
  view.in_state = std::chrono::seconds(3);
  view.why = "the health service says NOT_SERVING";
  view.share = 0;
  view.health_service = "watch: NOT_SERVING";
  backend_.set_health(view, {});
  EXPECT_EQ(
      Ctl({"endpoints", "users", "--why"}).out,
      "NAME  HEALTH       FOR  SHARE  PROBE-IN  WHY                                  LAST-ERROR  HEALTH-SERVICE\n"
      "a     not_serving   3s   0.0%         -  the health service says NOT_SERVING  -           watch: NOT_SERVING\n");
}

TEST_F(Sluicectl, OrdersAboutAnEndpoint) {
  using Order = upstream::ClusterHealth::Order;
  const std::tuple<const char*, Order, const char*> all[] = {
      {"eject", Order::kEject, "c is ejected\n"},
      {"restore", Order::kRestore, "c is restored\n"},
      {"reset-backoff", Order::kResetBackoff, "c is probed at once where it is ejected\n"}};
  for (const auto& [word, order, text] : all) {
    const ProgramResult result = Ctl({"endpoint", word, "users", "c"});
    EXPECT_EQ(result.code, 0) << result.err;
    EXPECT_EQ(result.out, text);
    EXPECT_EQ(backend_.last_order()->cluster + " " + backend_.last_order()->endpoint, "users c");
    EXPECT_EQ(backend_.last_order()->order, order);
  }
  EXPECT_EQ(Ctl({"endpoint", "eject", "users", "last"}).code, 1);
  EXPECT_EQ(Ctl({"endpoint", "eject", "none", "c"}).code, 1);
  EXPECT_EQ(Ctl({"endpoint", "eject", "users"}).code, 2);
}

TEST_F(Sluicectl, LimitsAreATable) {
  EXPECT_EQ(Ctl({"limits"}).out,
            "LIMIT                RATE  BURST  CAPPED  MAX  QUEUE  WAITING  IN-USE  CLIENTS  SOURCE\n"
            "process/concurrency     -      -  -       100   1024        2     100        -  file\n"
            "cluster/users/rate    0.5     10  no        -      5        0       -        -  file\n"
            "route/r/client_rate  none    100  yes       -      1        -       -        7  file\n");
  const std::string json = Ctl({"--json", "limits"}).out;
  for (const char* part : {"\"name\": \"process/concurrency\"", "\"max\": 100", "\"capped\": true", "\"rate\": 0.5",
                           "\"waiting\": \"2\"", "\"overridden\": false"}) {
    EXPECT_THAT(json, HasSubstr(part));
  }
}

TEST_F(Sluicectl, CertificatesAreATableAndWhatIsWrongBelow) {
  EXPECT_EQ(Ctl({"certs"}).out,
            "USED-BY        PURPOSE  SUBJECT  NAMES                       NOT-AFTER             DAYS  FILE\n"
            "listener/in    own      CN=a     a.example.com,spiffe://d/a  2027-01-15T08:00:00Z    55  /tls/a.crt\n"
            "listener/in    trusted  CN=ca    -                           2030-03-17T17:46:40Z    -1  /tls/ca.crt\n"
            "cluster/users  trusted  -        -                           -                        -  system\n"
            "listener/in: new files are not in force: no key\n");
  backend_.set_certificates({});
  EXPECT_EQ(Ctl({"certs"}).out, "no listener, no cluster and not the admin RPC has TLS\n");
}

TEST_F(Sluicectl, TheControlPlaneIsATableAndWhatItWasToldBelow) {
  EXPECT_EQ(Ctl({"xds"}).out, "no cluster follows xDS\n");
  backend_.set_xds(FakeBackend::Xds());
  EXPECT_EQ(Ctl({"xds"}).out,
            "Node     node-1\n"
            "Servers  a:1, b:2\n"
            "Stream   b:2 connected\n"
            "Error    -\n"
            "\n"
            "TYPE                   NAME   STATE           VERSION  UPDATED\n"
            "Cluster                users  ACKED           7        1m 5s ago\n"
            "Cluster                gone   DOES_NOT_EXIST  -        -\n"
            "ClusterLoadAssignment  new    REQUESTED       -        -\n"
            "ClusterLoadAssignment  users  NACKED          3        9s ago\n"
            "ClusterLoadAssignment users: version 4 was refused 2s ago: endpoints[0].priority: 9; allowed: [0, 7]\n"
            "ClusterLoadAssignment users: localities skipped: 1\n");
  EXPECT_THAT(Ctl({"--json", "xds"}).out, HasSubstr("\"refused_version\": \"4\""));
}

TEST_F(Sluicectl, SetsAndResetsALimit) {
  ProgramResult result = Ctl({"limit", "set", "cluster/users/rate", "--rate", "2.5", "--burst", "4", "--queue", "0"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(result.out, "cluster/users/rate: rate 2.5, burst 4, queue 0; changed by RPC\n");
  EXPECT_EQ(backend_.last_limit_change()->rate, 2.5);
  EXPECT_EQ(backend_.last_limit_change()->burst, 4u);
  EXPECT_EQ(backend_.last_limit_change()->max, std::nullopt);
  EXPECT_EQ(backend_.last_limit_change()->queue_max, 0u);
  EXPECT_THAT(Ctl({"limits"}).out, HasSubstr("rpc\n"));
  result = Ctl({"limit", "set", "cluster/users/rate", "--queue-time", "2s"});
  EXPECT_EQ(result.out, "cluster/users/rate: rate 2.5, burst 4, queue 0 for 2000 ms; changed by RPC\n");
  EXPECT_EQ(backend_.last_limit_change()->queue_time, std::chrono::seconds(2));
  result = Ctl({"limit", "set", "process/concurrency", "--max", "0"});
  EXPECT_EQ(result.out, "process/concurrency: max none, queue 1024; changed by RPC\n");
  EXPECT_EQ(backend_.last_limit_change()->rate, std::nullopt);
  result = Ctl({"limit", "reset", "process/concurrency"});
  EXPECT_EQ(result.out, "process/concurrency: max none, queue 1024; as configured\n");
  EXPECT_TRUE(backend_.last_limit_change()->reset);
  result = Ctl({"limit", "reset", "process/rate"});
  EXPECT_EQ(result.code, 1);
  EXPECT_EQ(result.err, "sluicectl: no limit process/rate\n  `sluicectl limits` shows what there is\n");
}

TEST_F(Sluicectl, ShowsTheCache) {
  EXPECT_EQ(Ctl({"cache", "stats"}).out,
            "Used                            3.0 MiB of 64.0 MiB\n"
            "Responses                       12\n"
            "Fetches                         1\n"
            "Hits                            60\n"
            "Stale                           15\n"
            "Coalesced                       5\n"
            "Misses                          20\n"
            "Answered                        80.0%\n"
            "Evicted                         9\n"
            "Expired                         8\n"
            "Purged                          7\n"
            "Not cached: request_too_large   0\n"
            "Not cached: not_unary           0\n"
            "Not cached: authorization       0\n"
            "Not cached: cookie              0\n"
            "Not cached: no_store            4\n"
            "Not cached: status              0\n"
            "Not cached: response_too_large  0\n"
            "Not cached: not_admitted        0\n"
            "Not cached: full                1\n"
            "Not cached: purged              0\n"
            "Not cached: superseded          0\n"
            "Not cached: fetches_full        0\n"
            "Not cached: vary                0\n"
            "Not cached: set_cookie          0\n"
            "Not cached: encoding            0\n");
  EXPECT_THAT(Ctl({"cache", "stats", "--json"}).out, HasSubstr("\"reason\": \"no_store\""));
  backend_.set_cache({});
  EXPECT_EQ(Ctl({"cache", "stats"}).out, "no route caches\n");
}

TEST_F(Sluicectl, PurgesTheCache) {
  ProgramResult result = Ctl({"cache", "purge"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(result.out, "3 responses dropped\n");
  EXPECT_EQ(backend_.last_purge()->service + backend_.last_purge()->method, "");
  EXPECT_EQ(backend_.last_purge()->key, std::nullopt);
  const std::vector<std::string> method = {"cache", "purge", "--service", "p.S", "--method", "M"};
  const auto with = [&](std::vector<std::string> more) {
    std::vector<std::string> words = method;
    words.insert(words.end(), more.begin(), more.end());
    return Ctl(words);
  };
  EXPECT_EQ(with({"--key", "abc"}).code, 0);
  EXPECT_EQ(backend_.last_purge()->service + "/" + backend_.last_purge()->method, "p.S/M");
  EXPECT_EQ(backend_.last_purge()->key, "abc");
  EXPECT_EQ(with({"--key", ""}).code, 0);
  EXPECT_EQ(backend_.last_purge()->key, "");
  const std::string bytes("\x0a\x00\n\r\xff", 5);
  std::ofstream(dir_ / "file", std::ios::binary) << bytes;
  EXPECT_EQ(with({"--key-file", dir_ / "file"}).code, 0);
  EXPECT_EQ(backend_.last_purge()->key, bytes);
  result = with({"--key-file", dir_ / "none"});
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.err, StartsWith("sluicectl: --key-file: cannot read "));
  EXPECT_EQ(with({"--key-file", dir_ / ""}).code, 2);
  std::ofstream(dir_ / "file", std::ios::binary) << std::string((1 << 20) + 1, 'x');
  EXPECT_THAT(with({"--key-file", dir_ / "file"}).err, HasSubstr("larger than 1 MiB"));
  result = Ctl({"cache", "purge", "--service", "/p.S"});
  EXPECT_EQ(result.code, 1);
  EXPECT_EQ(result.err, "sluicectl: service: must be like pkg.Service, without a /\n");
}

TEST_F(Sluicectl, SaysWhatIsBusyAndWhatWasRemoved) {
  for (auto [kind, hint] : {std::pair{base::ErrorKind::kBusy, "nothing was changed; try again in a moment"},
                            {base::ErrorKind::kRemoved, "a reload of the configuration took it away"}}) {
    backend_.set_busy(kind);
    const ProgramResult result = Ctl({"limit", "reset", "busy"});
    EXPECT_EQ(result.code, 1);
    EXPECT_EQ(result.err, "sluicectl: a reload holds it\n  " + std::string(hint) + "\n");
  }
}

TEST_F(Sluicectl, ARefusalIsOneWithAReasonAndAHint) {
  ProgramResult result = Ctl({"remove", "users", "a", "--if-version", "3"});
  EXPECT_EQ(result.code, 1);
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err, StartsWith("sluicectl: the list is at version 7\n"));
  EXPECT_THAT(result.err, HasSubstr("sluicectl clusters users"));
  result = Ctl({"clusters", "none"});
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.err, StartsWith("sluicectl: no cluster none\n"));
  EXPECT_EQ(Ctl({"remove", "broken", "a"}).code, 1);
}

TEST_F(Sluicectl, AWrongCommandLineIsTwo) {
  const ProgramResult result = Ctl({"frobnicate"});
  EXPECT_EQ(result.code, 2);
  EXPECT_EQ(result.err, "sluicectl: no command \"frobnicate\"\n  `sluicectl --help` shows all commands\n");
}

TEST_F(Sluicectl, NoDaemonIsThree) {
  ProgramResult result = Ctl({"--address", "unix:" + (dir_ / "none"), "status"});
  EXPECT_EQ(result.code, 3);
  EXPECT_THAT(result.err, HasSubstr("no daemon answers at unix:"));
  EXPECT_THAT(result.err, HasSubstr("--address or SLUICE_ADMIN"));
  server_->Shutdown(base::Nanos::zero());
  EXPECT_EQ(Ctl({"status"}).code, 3);
}

TEST_F(Sluicectl, ReloadTellsErrorsAndWarnings) {
  EXPECT_EQ(Ctl({"reload"}).out, "reloaded\n");
  backend_.set_reload({{}, {"workers: needs a restart"}});
  ProgramResult result = Ctl({"reload"});
  EXPECT_EQ(result.code, 0);
  EXPECT_EQ(result.err, "warning: workers: needs a restart\n");
  backend_.set_reload({{"sluice.yaml:3:1: listeners: is needed"}, {}});
  result = Ctl({"reload"});
  EXPECT_EQ(result.code, 1);
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err, StartsWith("error: sluice.yaml:3:1: listeners: is needed\n"));
  result = Ctl({"reload", "--json"});
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.out, HasSubstr("\"errors\": ["));
}

TEST_F(Sluicectl, CompletesNamesThatTheDaemonKnows) {
  EXPECT_EQ(Ctl({"__complete", "endpoints", "us"}).out, "users\n");
  EXPECT_EQ(Ctl({"__complete", "limit", "set", "c"}).out, "cluster/users/rate\n");
}

// The script as bash runs it: the words of the command line, then the candidates.
TEST_F(Sluicectl, CompletionInBash) {
  const auto complete = [&](const std::string& words) {
    const std::string script = "source <(" SLUICECTL_PATH " completion bash); cd " + (dir_ / "") +
                               "; COMP_WORDS=(" SLUICECTL_PATH " " + words +
                               "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _sluicectl; echo \"${COMPREPLY[@]}\"";
    return RunProgram({"/bin/bash", "-c", script}, {"SLUICE_ADMIN=" + server_->address(), "PATH=/usr/bin:/bin"}).out;
  };
  EXPECT_EQ(complete("cl"), "clusters\n");
  EXPECT_EQ(complete("log-level ''"), "trace debug info warn error off\n");
  EXPECT_EQ(complete("remove us"), "users\n");
  EXPECT_EQ(complete("limit reset route"), "route/r/client_rate\n");
  std::ofstream(dir_ / "ca file.pem") << "x";
  EXPECT_EQ(complete("--tls-ca ca"), "ca file.pem\n");
  EXPECT_EQ(complete("status --timeout ''"), "\n");
}

TEST_F(Sluicectl, TheRest) {
  EXPECT_EQ(Ctl({"metrics"}).out, backend_.RenderMetrics());
  EXPECT_EQ(Ctl({"log-level"}).out, "info\n");
  EXPECT_EQ(Ctl({"log-level", "debug"}).out, "debug\n");
  EXPECT_EQ(backend_.LogLevel(), "debug");
  EXPECT_EQ(Ctl({"log-level", "loud"}).code, 1);
  EXPECT_EQ(Ctl({"drain", "--timeout", "30s"}).code, 0);
  EXPECT_EQ(backend_.drain_timeout(), std::chrono::seconds(30));
  EXPECT_EQ(Ctl({"drain"}).code, 0);
  EXPECT_EQ(backend_.drain_timeout(), std::nullopt);
  EXPECT_EQ(backend_.drain_delay(), std::nullopt);
  EXPECT_EQ(Ctl({"drain", "--delay", "5s"}).code, 0);
  EXPECT_EQ(backend_.drain_delay(), std::chrono::seconds(5));
  EXPECT_EQ(backend_.drains_, 3);
  EXPECT_EQ(Ctl({"stop"}).code, 0);
  EXPECT_EQ(backend_.stops_, 1);
  EXPECT_THAT(Ctl({"--version"}).out, StartsWith("sluicectl "));
  EXPECT_THAT(Ctl({"--help"}).out, HasSubstr("Exit codes"));
}

}  // namespace
}  // namespace sluice::admin
