// The command line of sluicectl: the commands that it accepts, and its errors for all others.
#include "sluicectl/args.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

namespace sluice::ctl {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

Args Good(const std::vector<std::string>& words, std::string_view env = "") {
  base::Result<Args> args = ParseArgs(words, env);
  EXPECT_TRUE(args.ok()) << (args.ok() ? "" : args.error().detail);
  return args.ok() ? *args : Args{};
}

std::string Error(const std::vector<std::string>& words) {
  base::Result<Args> args = ParseArgs(words, "");
  return args.ok() ? "(accepted)" : args.error().detail;
}

TEST(Args, TakesTheAddressFromTheFlagThenTheEnvironmentThenTheDefault) {
  EXPECT_EQ(Good({"status"}).address, kDefaultAddress);
  EXPECT_EQ(Good({"status"}, "unix:/e").address, "unix:/e");
  EXPECT_EQ(Good({"status", "--address", "h:1"}, "unix:/e").address, "h:1");
  EXPECT_EQ(Good({"--address=h:1", "status"}).address, "h:1");
}

TEST(Args, FlagsMayStandAnywhere) {
  const Args args = Good({"--json", "add", "users", "--if-version=7", "c=h:1", "--preview", "--timeout", "2m"});
  EXPECT_EQ(args.command, Command::kAdd);
  EXPECT_TRUE(args.json && args.preview);
  EXPECT_EQ(args.if_version, 7u);
  EXPECT_EQ(args.timeout, std::chrono::minutes(2));
}

TEST(Args, TimeoutAfterDrainIsTheDrains) {
  const Args args = Good({"--timeout", "1s", "drain", "--timeout", "30s"});
  EXPECT_EQ(args.timeout, milliseconds(1'000));
  EXPECT_EQ(args.drain_timeout, milliseconds(30'000));
  EXPECT_EQ(Good({"drain"}).drain_timeout, std::nullopt);
  EXPECT_EQ(Good({"drain", "--timeout=0s"}).drain_timeout, milliseconds(0));
}

TEST(Args, ReadsEndpoints) {
  const Args args = Good({"add", "users", "c=10.0.0.7:1@2.5", "[::1]:2", "d=unix:/x", "--weight", "4"});
  EXPECT_EQ(args.cluster, "users");
  EXPECT_EQ(args.endpoints,
            (std::vector<EndpointArg>{{"c", "10.0.0.7:1", 2.5}, {"", "[::1]:2", 4.0}, {"d", "unix:/x", 4.0}}));
  EXPECT_EQ(*ParseEndpoint("unix:/a=b@c"), (EndpointArg{"", "unix:/a=b@c", std::nullopt}));
  EXPECT_EQ(*ParseEndpoint("n=unix:/a=b@3"), (EndpointArg{"n", "unix:/a=b", 3.0}));
}

TEST(Args, ReadsNamesWithAndWithoutWeights) {
  EXPECT_EQ(Good({"reweight", "u", "a@3", "10.0.0.7:1", "--weight=2"}).endpoints,
            (std::vector<EndpointArg>{{"a", "", 3.0}, {"10.0.0.7:1", "", 2.0}}));
  // remove takes names as they are: one may hold an @.
  EXPECT_EQ(Good({"remove", "u", "a@3", "--", "--odd"}).endpoints,
            (std::vector<EndpointArg>{{"a@3", "", std::nullopt}, {"--odd", "", std::nullopt}}));
}

TEST(Args, WaitReadyHasATimeOfItsOwn) {
  const Args args = Good({"wait-ready"});
  EXPECT_EQ(args.command, Command::kWaitReady);
  EXPECT_EQ(args.wait, milliseconds(60'000));
  EXPECT_FALSE(args.for_endpoints);
  const Args other = Good({"wait-ready", "--timeout", "5s", "--for", "endpoints"});
  EXPECT_EQ(other.wait, milliseconds(5'000));
  EXPECT_EQ(other.timeout, milliseconds(10'000));
  EXPECT_TRUE(other.for_endpoints);
  EXPECT_FALSE(Good({"wait-ready", "--for=listening"}).for_endpoints);
  EXPECT_EQ(Error({"wait-ready", "--for", "calls"}), "--for must be listening or endpoints");
  EXPECT_EQ(Error({"wait-ready", "--timeout", "0s"}), "--timeout must be more than 0");
  EXPECT_THAT(Good({"wait-ready", "--help"}).text, HasSubstr("--for WHAT"));
  EXPECT_EQ(Error({"status", "--for", "endpoints"}), "status takes no --for");
}

TEST(Args, ADrainMayTakeTime) {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"endpoint", "drain", "users", "c", "--over", "60s"},
        {"drain-endpoint", "users", "c", "--over=1m"}}) {
    const Args args = Good(words);
    EXPECT_EQ(args.command, Command::kDrainEndpoint);
    EXPECT_EQ(args.over, milliseconds(60'000));
    EXPECT_EQ(args.endpoints[0].name, "c");
  }
  EXPECT_EQ(Good({"drain-endpoint", "users", "c"}).over, milliseconds(0));
  EXPECT_EQ(Good({"endpoint", "undrain", "users", "c"}).command, Command::kUndrainEndpoint);
  EXPECT_EQ(Error({"endpoint", "drain", "users", "c", "--over", "0s"}), "--over must be more than 0");
  EXPECT_EQ(Error({"remove", "users", "c", "--over", "60s"}), "remove takes no --over");
}

TEST(Args, NewEndpointsHaveAPriorityAndALocality) {
  const Args args = Good({"add", "users", "h:1", "--priority", "2", "--locality", "eu"});
  EXPECT_EQ(args.priority, 2u);
  EXPECT_EQ(args.locality, "eu");
  EXPECT_EQ(Error({"reweight", "users", "c@2", "--priority", "1"}), "reweight takes no --priority");
}

TEST(Args, KnowsHelpAndVersionBesideAnything) {
  EXPECT_EQ(Good({"--help"}).command, Command::kPrint);
  EXPECT_EQ(Good({"add", "-h"}).command, Command::kPrint);
  EXPECT_EQ(Good({"--version"}).command, Command::kPrint);
  EXPECT_THAT(Good({"--version", "add"}).text, StartsWith("sluicectl "));
}

TEST(Args, SaysWhatIsWrong) {
  EXPECT_EQ(Error({}), "a command is needed");
  EXPECT_EQ(Error({"--json"}), "a command is needed");
  EXPECT_EQ(Error({"stauts"}), "no command \"stauts\"");
  EXPECT_EQ(Error({"status", "--jsn"}), "no flag \"--jsn\"");
  EXPECT_EQ(Error({"status", "--json=1"}), "--json takes no value");
  EXPECT_EQ(Error({"status", "--address"}), "--address needs a value");
  EXPECT_THAT(Error({"status", "--address", "nowhere"}), HasSubstr("must be unix:/path or host:port"));
  EXPECT_EQ(Error({"status", "x"}), "status takes nothing");
  EXPECT_EQ(Error({"endpoints"}), "endpoints takes CLUSTER");
  EXPECT_EQ(Error({"add", "users"}), "add takes CLUSTER [NAME=]ADDRESS[@WEIGHT]...");
  EXPECT_THAT(Error({"add", "users", "c"}), HasSubstr("must be [NAME=]ADDRESS[@WEIGHT]"));
  EXPECT_THAT(Error({"add", "users", "=h:1"}), HasSubstr("nothing before ="));
  EXPECT_THAT(Error({"add", "users", "c=h:1@0"}), HasSubstr("must be a number above 0"));
  EXPECT_THAT(Error({"add", "users", "c=h:1", "--weight", "-1"}), HasSubstr("must be a number above 0"));
  EXPECT_THAT(Error({"add", "users", "c=h:1", "--weight", "nan"}), HasSubstr("must be a number above 0"));
  EXPECT_THAT(Error({"reweight", "users", "c"}), HasSubstr("write c@2"));
  EXPECT_EQ(Error({"remove", "users", "c", "--weight", "2"}), "remove takes no --weight");
  EXPECT_THAT(Error({"reload", "--preview"}), HasSubstr("reload takes no --preview"));
  EXPECT_EQ(Error({"status", "--if-version", "3"}), "status takes no --if-version");
  EXPECT_THAT(Error({"remove", "u", "c", "--if-version", "-1"}), HasSubstr("must be a version"));
  EXPECT_EQ(Error({"--timeout", "0s", "status"}), "--timeout must be more than 0");
  EXPECT_EQ(Error({"--tls-ca=f", "status"}),
            "TLS needs --tls-ca, --tls-cert and --tls-key: the daemon asks for a certificate");
  EXPECT_EQ(Error({"--tls-server-name=n", "status"}),
            "TLS needs --tls-ca, --tls-cert and --tls-key: the daemon asks for a certificate");
  EXPECT_EQ(Error({"--tls-key", "", "status"}), "--tls-key needs a value");
  EXPECT_EQ(Error({"completion", "fish"}), "completion takes bash or zsh");
}

TEST(Args, ReadsLimits) {
  EXPECT_EQ(Good({"limits"}).command, Command::kLimits);
  EXPECT_EQ(Good({"certs"}).command, Command::kCerts);
  EXPECT_EQ(Good({"xds"}).command, Command::kXds);
  EXPECT_EQ(Good({"config", "dump"}).command, Command::kConfigDump);
  EXPECT_TRUE(Good({"config", "dump", "--from-file"}).from_file);
  EXPECT_EQ(Good({"config", "diff"}).file, "");
  EXPECT_EQ(Good({"config", "diff", "a.yaml"}).file, "a.yaml");
  EXPECT_EQ(Good({"__complete", "config", "diff", ""}).text, ":files\n");
  Args args = Good({"limit", "set", "cluster/users/rate", "--rate", "0.5", "--burst=7", "--queue", "0"});
  EXPECT_EQ(args.command, Command::kLimitSet);
  EXPECT_EQ(args.word, "cluster/users/rate");
  EXPECT_EQ(args.limit, (LimitArgs{0.5, 7, std::nullopt, 0}));
  args = Good({"limit", "--json", "set", "--max", "3", "process/concurrency"});
  EXPECT_EQ(args.limit, (LimitArgs{std::nullopt, std::nullopt, 3, std::nullopt}));
  EXPECT_TRUE(args.json);
  args = Good({"limit", "reset", "a b"});
  EXPECT_EQ(args.command, Command::kLimitReset);
  EXPECT_EQ(args.word, "a b");
}

TEST(Args, SaysWhatIsWrongWithALimit) {
  EXPECT_EQ(Error({"limit"}), "limit takes set or reset");
  EXPECT_EQ(Error({"limit", "get"}), "no command \"limit get\": limit takes set or reset");
  EXPECT_EQ(Error({"set"}), "no command \"set\"");
  EXPECT_EQ(Error({"limits", "x"}), "limits takes nothing");
  EXPECT_EQ(Error({"limit", "set", "--rate", "1"}),
            "limit set takes NAME and --rate, --burst, --max, --queue or --queue-time");
  EXPECT_EQ(Error({"limit", "set", "x"}), "limit set needs --rate, --burst, --max, --queue or --queue-time");
  EXPECT_EQ(Error({"limit", "reset", "x", "--max", "1"}), "limit reset takes no --max");
  EXPECT_EQ(Error({"limit", "set", "x", "--max", "1", "--preview"}), "limit set takes no --preview");
  EXPECT_EQ(Error({"status", "--rate", "1"}), "status takes no --rate");
  for (const char* bad : {"-1", "nan", "inf", "", "1/s", "1e999"}) {
    EXPECT_THAT(Error({"limit", "set", "x", "--rate", bad}), HasSubstr("must be calls a second")) << bad;
  }
  for (const char* bad : {"-1", "1.5", "", "4294967296", "1k"}) {
    for (const char* flag : {"--burst", "--max", "--queue"}) {
      EXPECT_THAT(Error({"limit", "set", "x", flag, bad}), HasSubstr("must be a whole number, 0 or more")) << bad;
    }
  }
}

TEST(Args, ReadsFaults) {
  using std::chrono::milliseconds;
  Args args = Good({"fault", "add", "users", "--delay", "100ms", "--percent", "2.5", "--for", "60s"});
  EXPECT_EQ(args.command, Command::kFaultAdd);
  EXPECT_EQ(args.word, "users");
  EXPECT_EQ(args.fault, (FaultArgs{milliseconds(100), milliseconds(60'000), "", std::nullopt, 2.5, 0}));
  args = Good({"fault", "add", "p.S/M", "--abort", "UNAVAILABLE", "--for", "1h"});
  EXPECT_EQ(args.fault.abort, "UNAVAILABLE");
  EXPECT_EQ(Good({"fault", "add", "r", "--reset-after", "0", "--for", "1s"}).fault.reset_after, 0u);
  EXPECT_EQ(Good({"fault", "list"}).command, Command::kFaultList);
  args = Good({"fault", "remove", "17"});
  EXPECT_EQ(args.command, Command::kFaultRemove);
  EXPECT_EQ(args.fault.id, 17u);
}

TEST(Args, SaysWhatIsWrongWithAFault) {
  EXPECT_EQ(Error({"fault"}), "fault takes add or list or remove");
  EXPECT_EQ(Error({"fault", "add", "r", "--delay", "1s"}), "fault add needs --for, the time until it ends by itself");
  EXPECT_EQ(Error({"fault", "add", "r", "--for", "1s"}), "fault add needs --delay, --abort or --reset-after");
  EXPECT_EQ(Error({"fault", "add", "--delay", "1s", "--for", "1s"}),
            "fault add takes ROUTE, CLUSTER or METHOD and --for, with --delay, --abort or --reset-after");
  EXPECT_THAT(Error({"fault", "add", "r", "--delay", "1s", "--for", "0"}), HasSubstr("--for"));
  EXPECT_THAT(Error({"fault", "add", "r", "--delay", "1s", "--for", "1s", "--percent", "x"}),
              HasSubstr("must be a number, 0 or more"));
  EXPECT_EQ(Error({"fault", "remove", "x"}), "\"x\" is no id: `sluicectl fault list` shows them");
  EXPECT_EQ(Error({"fault", "list", "--for", "1s"}), "fault list takes no --for");
}

TEST(Args, ReadsTheCallToExplain) {
  const Args args = Good({"explain", "pkg.Users/Get", "-H", "X-User=ann=b", "-H", "x-empty=", "--listener", "main",
                          "--authority", "h:1", "--content-type", "application/grpc-web"});
  EXPECT_EQ(args.command, Command::kExplain);
  EXPECT_EQ(args.word, "/pkg.Users/Get");
  using Pairs = std::vector<std::pair<std::string, std::string>>;
  EXPECT_EQ(args.explain.metadata, (Pairs{{"x-user", "ann=b"}, {"x-empty", ""}}));
  EXPECT_EQ(args.explain.listener, "main");
  EXPECT_EQ(args.explain.authority, "h:1");
  EXPECT_EQ(args.explain.type, "application/grpc-web");
  EXPECT_TRUE(Good({"explain", "/x", "--plain"}).explain.plain);
  EXPECT_EQ(Good({"--listener", "side", "explain", "x"}).explain.listener, "side");
  EXPECT_EQ(Good({"explain", "-H", "a=b", "/x"}).word, "/x") << "a flag takes one word";
  EXPECT_EQ(Good({"routes"}).command, Command::kRoutes);
  EXPECT_EQ(Error({"explain"}), "explain takes PATH");
  EXPECT_EQ(Error({"explain", "/x", "-H", "novalue"}), "-H \"novalue\": must be NAME=VALUE");
  EXPECT_EQ(Error({"explain", "/x", "--plain", "--content-type", "a/b"}),
            "one of --plain and --content-type is enough");
  EXPECT_EQ(Error({"status", "--plain"}), "status takes no --plain");
}

TEST(Args, ReadsCacheCommands) {
  EXPECT_EQ(Good({"cache", "stats"}).command, Command::kCacheStats);
  Args args = Good({"cache", "purge"});
  EXPECT_EQ(args.command, Command::kCachePurge);
  EXPECT_EQ(args.purge, PurgeArgs{});
  args = Good({"cache", "purge", "--service", "p.S", "--method=M", "--key", ""});
  EXPECT_EQ(args.purge, (PurgeArgs{"p.S", "M", "", ""}));  // the empty message is one too
  args = Good({"cache", "purge", "--service", "p.S", "--method=M", "--key-hex", "0a 00 fF"});
  EXPECT_EQ(args.purge.key, std::string("\x0a\x00\xff", 3));
  args = Good({"cache", "purge", "--service", "p.S", "--method=M", "--key-file", "f"});
  EXPECT_EQ(args.purge, (PurgeArgs{"p.S", "M", std::nullopt, "f"}));
}

TEST(Args, SaysWhatIsWrongWithAPurge) {
  EXPECT_EQ(Error({"cache"}), "cache takes stats or purge");
  EXPECT_EQ(Error({"cache", "clear"}), "no command \"cache clear\": cache takes stats or purge");
  EXPECT_EQ(Error({"cache", "purge", "x"}), "cache purge takes nothing but flags");
  EXPECT_EQ(Error({"cache", "stats", "--service", "x"}), "cache stats takes no --service");
  EXPECT_EQ(Error({"cache", "purge", "--method", "M"}), "--method needs --service");
  EXPECT_EQ(Error({"cache", "purge", "--service", ""}), "--service needs a value");  // else: everything
  EXPECT_THAT(Error({"cache", "purge", "--service", "S", "--key", "x"}), HasSubstr("needs --service and --method"));
  EXPECT_THAT(Error({"cache", "purge", "--key-hex", "0"}), HasSubstr("two digits for each byte"));
  EXPECT_EQ(Error({"cache", "purge", "--key-hex", "0g"}), "--key-hex \"0g\": \"g\" is no hex digit");
  EXPECT_THAT(Error({"cache", "purge", "--service", "S", "--method", "M", "--key", "x", "--key-file", "f"}),
              HasSubstr("one of --key"));
}

TEST(Args, DurationsHaveUnits) {
  EXPECT_EQ(*ParseDuration("500ms"), milliseconds(500));
  EXPECT_EQ(*ParseDuration("24h"), std::chrono::hours(24));
  for (const char* bad : {"", "s", "30", "-1s", "1.5s", "25h", "99999999999999s", "1 s"}) {
    EXPECT_FALSE(ParseDuration(bad).ok()) << bad;
  }
}

TEST(Args, HelpIsOfTheCommandThatStandsBeforeIt) {
  const std::string all = Good({"--help"}).text;
  for (const char* part : {"status", "drain-endpoint", "--address ADDRESS", "Exit codes", "$SLUICE_ADMIN"}) {
    EXPECT_THAT(all, HasSubstr(part));
  }
  EXPECT_THAT(all, Not(HasSubstr("--if-version")));
  const std::string set = Good({"limit", "set", "-h"}).text;
  for (const char* part : {"sluicectl limit set", "NAME", "--rate R", "--burst N", "--max N", "--queue N"}) {
    EXPECT_THAT(set, HasSubstr(part));
  }
  EXPECT_THAT(set, Not(HasSubstr("--weight")));
  EXPECT_THAT(Good({"limit", "--help"}).text, testing::AllOf(HasSubstr("reset"), HasSubstr("set")));
  EXPECT_THAT(Good({"add", "--help"}).text, HasSubstr("CLUSTER [NAME=]ADDRESS[@WEIGHT]..."));
}

TEST(Args, HelpHasNoTwoEmptyLinesInARowAndNoneAtItsEnd) {
  for (const auto& words : {std::vector<std::string>{"--help"}, {"limit", "set", "--help"}, {"limit", "--help"}}) {
    const std::string text = Good(words).text;
    EXPECT_THAT(text, HasSubstr("\n\n"));
    EXPECT_THAT(text, Not(HasSubstr("\n\n\n")));
    EXPECT_THAT(text, Not(testing::EndsWith("\n\n")));
    EXPECT_THAT(text, testing::EndsWith("\n"));
  }
}

TEST(Args, AFlagMayStandBeforeItsCommand) {
  EXPECT_TRUE(Good({"--preview", "remove", "users", "c"}).preview);
  EXPECT_EQ(Good({"--max=3", "limit", "set", "n"}).limit.max, 3u);
  EXPECT_EQ(Error({"--max=3", "limit", "reset", "n"}), "limit reset takes no --max");
  EXPECT_EQ(Error({"--preview", "status"}), "status takes no --preview");
}

TEST(Args, WordsThatLookLikeSomethingElse) {
  // A cluster may have a command's name.
  EXPECT_EQ(Good({"clusters", "status"}).cluster, "status");
  EXPECT_EQ(Good({"remove", "drain", "stop", "[a,b]"}).endpoints,
            (std::vector<EndpointArg>{{"stop", "", std::nullopt}, {"[a,b]", "", std::nullopt}}));
  // An empty value is a value, also after =; the last one counts.
  EXPECT_EQ(Good({"cache", "purge", "--service=S", "--method=M", "--key=", "--json"}).purge.key, "");
  EXPECT_EQ(Good({"--address=a:1", "status", "--address", "b:1"}).address, "b:1");
  EXPECT_EQ(Error({"status", "--tls-key="}), "--tls-key needs a value");
  EXPECT_EQ(Error({"remove", "u", "++"}), "no flag \"++\"");  // it would be dropped
}

// The candidates, each with what follows the tab.
std::string Completed(const std::vector<std::string>& words) {
  std::vector<std::string> all = {"__complete"};
  all.insert(all.end(), words.begin(), words.end());
  const Args args = Good(all, "h:1");
  EXPECT_EQ(args.address, "h:1");
  if (args.command == Command::kCompleteCluster) return "clusters " + args.word;
  if (args.command == Command::kCompleteLimit) return "limits " + args.word;
  if (args.command == Command::kCompleteRoute) return "routes " + args.word;
  if (args.command == Command::kCompleteFault) return "faults " + args.word;
  if (args.command == Command::kCompleteEndpoint) return "endpoints of " + args.cluster + " " + args.word;
  EXPECT_EQ(args.command, Command::kPrint);
  return args.text;
}

TEST(Completion, KnowsWhatMayFollow) {
  EXPECT_THAT(Completed({""}), testing::AllOf(HasSubstr("status\t"), HasSubstr("limit\t"), HasSubstr("completion\t")));
  EXPECT_EQ(Completed({"und"}), "undrain-endpoint\ttakes calls again\n");
  EXPECT_EQ(Completed({"--json", "--address", "status", "und"}), Completed({"und"}));  // "status" is a value here
  EXPECT_EQ(Completed({"cache", "p"}), "purge\tdrop all responses, or only those that the flags name\n");
  EXPECT_THAT(Completed({"wait"}), StartsWith("wait-ready\t"));
  EXPECT_THAT(Completed({"wait-ready", "--f"}), StartsWith("--for\tlistening"));
  EXPECT_EQ(Completed({"log-level", "d"}), "debug\t\n");
  EXPECT_EQ(Completed({"completion", ""}), "bash\t\nzsh\t\n");
  EXPECT_EQ(Completed({"limit", "set", "--m"}), "--max\tcalls under way at once; 0: no limit\n");
  EXPECT_THAT(Completed({"limit", "reset", "--"}), testing::AllOf(HasSubstr("--json\t"), Not(HasSubstr("--max"))));
  EXPECT_THAT(Completed({"drain", "--t"}), StartsWith("--timeout\tfinish what runs"));
  EXPECT_THAT(Completed({"status", ""}), HasSubstr("--address\t"));
}

TEST(Completion, AsksTheDaemonForNames) {
  for (const char* command : {"clusters", "endpoints", "add", "remove", "reweight", "replace", "drain-endpoint"}) {
    EXPECT_EQ(Completed({command, "us"}), "clusters us");
  }
  EXPECT_EQ(Completed({"limit", "set", "--max", "3", ""}), "limits ");
  EXPECT_EQ(Completed({"fault", "remove", "1"}), "faults 1");
  EXPECT_EQ(Completed({"add", "users", ""}).find("clusters"), std::string::npos);  // the second word is none
  for (const char* command : {"remove", "reweight", "drain-endpoint", "undrain-endpoint"}) {
    EXPECT_EQ(Completed({command, "users", "--preview", "a", "ec"}), "endpoints of users ec");
  }
  EXPECT_EQ(Completed({"endpoint", "eject", "us"}), "clusters us");
  EXPECT_EQ(Completed({"endpoint", "eject", "users", ""}), "endpoints of users ");
}

TEST(Completion, KnowsWhereAFileOrAnythingMayStand) {
  EXPECT_EQ(Completed({"--tls-ca", ""}), ":files\n");
  EXPECT_EQ(Completed({"cache", "purge", "--key-file", "a"}), ":files\n");
  EXPECT_EQ(Completed({"status", "--timeout", ""}), "");
  EXPECT_EQ(Completed({"limit", "set", "--rate", ""}), "");
  EXPECT_EQ(Completed({"add", "users", "--", "--"}), "");
}

TEST(Completion, InstalledScriptsAreTheOnesTheProgramPrints) {
  for (auto [shell, file] : {std::pair{"bash", "sluicectl.bash"}, {"zsh", "_sluicectl"}}) {
    std::ifstream stream(std::string(SLUICE_SOURCE_DIR "/deploy/completion/") + file);
    std::stringstream text;
    text << stream.rdbuf();
    EXPECT_EQ(text.str(), CompletionScript(shell)) << "write it anew: sluicectl completion " << shell;
  }
}

}  // namespace
}  // namespace sluice::ctl
