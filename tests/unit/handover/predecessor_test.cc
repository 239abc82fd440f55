#include "handover/predecessor.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>

#include "handover/record_file.h"
#include "handover/successor.h"

namespace sluice::handover {
namespace {

using base::ErrorKind;

constexpr std::chrono::milliseconds kPatience{30'000};

Descriptor EmptyFile() { return std::move(*RecordWriter::Open()->Finish()); }

// The other side, played by the test; what the predecessor's side says to the process under test is sent beforehand.
class PredecessorTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto pair = MessageSocket::MakePair();
    ASSERT_TRUE(pair.ok());
    old = Channel(std::move(pair->first));
    young = Channel(std::move(*MessageSocket::Adopt(pair->second.Release())));
  }
  void Begin(int sockets, int sent) {
    v1::Message message;
    message.mutable_begin()->set_format(kFormat);
    message.mutable_begin()->set_pid(77);
    for (int i = 0; i < sockets; ++i) message.mutable_begin()->add_sockets();
    const Descriptor file = EmptyFile();
    ASSERT_TRUE(old.Send(message, std::vector<int>(static_cast<size_t>(sent), file.get())).ok());
  }
  void Take(int processes, int sent) {
    v1::Message message;
    message.mutable_take();
    for (int i = 0; i < processes; ++i) message.mutable_take()->add_processes();
    const Descriptor file = EmptyFile();
    ASSERT_TRUE(old.Send(message, std::vector<int>(static_cast<size_t>(sent), file.get())).ok());
  }
  base::Result<std::unique_ptr<Predecessor>> Meet() { return Predecessor::Meet(std::move(young), "1.2.3", kFormat); }
  v1::Message Hear() {
    auto received = old.Receive(kPatience);
    EXPECT_TRUE(received.ok() && received->has_value());
    return received.ok() && *received ? (*received)->message : v1::Message();
  }

  Channel old, young;
};

TEST_F(PredecessorTest, GoesThroughTheWholeConversation) {
  Begin(2, 3);
  auto met = Meet();
  ASSERT_TRUE(met.ok()) << met.error().detail;
  const v1::Message hello = Hear();
  EXPECT_EQ(hello.hello().format(), kFormat);
  EXPECT_EQ(hello.hello().version(), "1.2.3");
  EXPECT_EQ((*met)->begin().pid(), 77u);
  EXPECT_GE((*met)->TakeSocket(1).get(), 0);
  EXPECT_EQ((*met)->TakeSocket(1).get(), -1) << "once";
  Take(3, 4);
  ASSERT_TRUE((*met)->Ready().ok());
  EXPECT_TRUE(Hear().has_ready());
  EXPECT_EQ((*met)->take().processes_size(), 3);
  EXPECT_EQ((*met)->TakeChannels().size(), 2u);
  const Channel channel = (*met)->Serving();
  EXPECT_TRUE(channel.open());
  EXPECT_TRUE(Hear().has_serving());
}

TEST_F(PredecessorTest, TellsWhyItGivesUp) {
  Begin(0, 1);
  auto met = Meet();
  ASSERT_TRUE(met.ok());
  (void)Hear();
  (*met)->Fail("the port \x01 is taken");
  EXPECT_EQ(Hear().failed().why(), "the port \\x01 is taken");
}

TEST_F(PredecessorTest, HearsWhyTheOtherProcessGoesOn) {
  v1::Message message;
  message.mutable_failed()->set_why("too late");
  ASSERT_TRUE(old.Send(message).ok());
  const auto met = Meet();
  ASSERT_FALSE(met.ok());
  EXPECT_NE(met.error().detail.find("too late"), std::string::npos);
}

TEST_F(PredecessorTest, RefusesWhatDoesNotFit) {
  Begin(2, 2);
  EXPECT_EQ(Meet().error().kind, ErrorKind::kInvalidArgument);
}

TEST_F(PredecessorTest, RefusesATakeWithoutItsDescriptors) {
  for (const auto& [processes, sent] : {std::pair(0, 1), {2, 2}, {1, 3}, {1, 1}}) {
    SetUp();
    Begin(0, 1);
    auto met = Meet();
    ASSERT_TRUE(met.ok());
    Take(processes, sent);
    EXPECT_EQ((*met)->Ready().error().kind, ErrorKind::kInvalidArgument) << processes << " " << sent;
  }
}

TEST_F(PredecessorTest, RefusesWhatIsOutOfTurnAndWhatIsNoMessage) {
  Take(1, 1);
  EXPECT_EQ(Meet().error().kind, ErrorKind::kInvalidArgument);
  SetUp();
  MessageSocket raw = std::move(*MessageSocket::Adopt(old.Release()));
  ASSERT_TRUE(raw.Send("\xff\xff\xff").ok());
  EXPECT_EQ(Meet().error().kind, ErrorKind::kInvalidArgument);
}

TEST_F(PredecessorTest, TheEndOfTheOtherProcessIsAnError) {
  old.Close();
  EXPECT_EQ(Meet().error().kind, ErrorKind::kIo);
}

TEST(PredecessorFromEnvironmentTest, ThereIsNoneWithoutTheVariable) {
  ::unsetenv(Successor::kVariable);
  auto none = Predecessor::FromEnvironment("1");
  ASSERT_TRUE(none.ok());
  EXPECT_EQ(*none, nullptr);
}

TEST(PredecessorFromEnvironmentTest, NamesABadVariableAndTakesItAway) {
  for (const char* bad : {"", "x", "-1", "3x", "999999", "99999999999999999999"}) {
    ::setenv(Successor::kVariable, bad, 1);
    EXPECT_FALSE(Predecessor::FromEnvironment("1").ok()) << bad;
    EXPECT_EQ(std::getenv(Successor::kVariable), nullptr);
  }
}

TEST(ProgramTest, IsFoundByItsName) {
  const char* argv[] = {"/bin/sh", "-c", "true"};
  const Program program = Program::OfThisProcess(3, argv);
  EXPECT_EQ(program.path, "/bin/sh");
  EXPECT_EQ(program.arguments, (std::vector<std::string>{"/bin/sh", "-c", "true"}));
  EXPECT_TRUE(program.FileHasChanged()) << "this process was started from another file";
  const char* by_path[] = {"a-name-without-a-folder"};
  const Program found = Program::OfThisProcess(1, by_path);
  EXPECT_FALSE(found.path.empty());
  EXPECT_FALSE(found.FileHasChanged());
  const char* nowhere[] = {"/no/such/file"};
  EXPECT_EQ(Program::OfThisProcess(1, nowhere).path, "");
}

TEST(SuccessorTest, TheProgramHasTheSocketAndEndsWithItsOwner) {
  Program program{
      "/bin/sh", {"sh", "-c", "test \"$SLUICE_HANDOVER_FD\" = 3 && test \"$MORE\" = 1 && exec sleep 60"}, {"MORE=1"}};
  pid_t pid = 0;
  {
    auto started = Successor::Start(program);
    ASSERT_TRUE(started.ok()) << started.error().detail;
    pid = started->pid();
    EXPECT_EQ(::kill(pid, 0), 0);
    auto nothing = started->channel().Receive(std::chrono::milliseconds(0));
    EXPECT_TRUE(nothing.ok()) << "it still has its end";
  }
  EXPECT_NE(::kill(pid, 0), 0) << "no process, and no dead one, is left";
}

TEST(SuccessorTest, ItsEndIsSeen) {
  auto started = Successor::Start({"/bin/sh", {"sh", "-c", "exit 3"}, {}});
  ASSERT_TRUE(started.ok());
  EXPECT_EQ(started->channel().Receive(kPatience).error().kind, ErrorKind::kIo);
}

TEST(SuccessorTest, NamesAFileThatCannotBeStarted) {
  const auto started = Successor::Start({"/no/such/file", {"x"}, {}});
  ASSERT_FALSE(started.ok());
  EXPECT_NE(started.error().detail.find("/no/such/file"), std::string::npos);
  EXPECT_FALSE(Successor::Start({"", {}, {}}).ok());
}

}  // namespace
}  // namespace sluice::handover
