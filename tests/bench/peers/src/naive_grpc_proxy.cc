// The obvious gRPC proxy: grpc++ generic async API, messages forwarded as opaque ByteBuffers.
//   naive_grpc_proxy --listen host:port --upstream host:port [--threads N] [--mode stream|unary]
// stream: pumps messages both ways, so it carries any call type (what a real proxy needs).
// unary : reads one message, makes one unary call, answers (the cheapest thing this API can do).
// One completion queue and one thread per --threads; one upstream channel shared by all.
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <signal.h>
#include <string.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

using grpc::ByteBuffer;
static bool unary_mode;
static grpc::AsyncGenericService service;
static grpc::GenericStub* stub;

static void CopyMetadata(const grpc::GenericServerContext& s, grpc::ClientContext* c) {
  for (auto& kv : s.client_metadata()) {
    std::string k(kv.first.data(), kv.first.size());
    if (k == "user-agent" || k[0] == ':') continue;  // grpc++ sets its own
    c->AddMetadata(k, std::string(kv.second.data(), kv.second.size()));
  }
  c->set_deadline(s.deadline());
}

struct Call;
struct Tag {
  Call* call;
  int op;
};
enum { kNew, kReqRead, kReqWritten, kReqDone, kRespRead, kRespWritten, kFinish, kReply, kOps };

struct Call {
  grpc::ServerCompletionQueue* cq;
  grpc::GenericServerContext sctx;
  grpc::GenericServerAsyncReaderWriter srv{&sctx};
  grpc::ClientContext cctx;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> cli;
  std::unique_ptr<grpc::GenericClientAsyncResponseReader> ucli;
  ByteBuffer req, resp;
  grpc::Status status;
  bool sent_initial = false;
  int pending = 0;
  Tag tags[kOps];

  explicit Call(grpc::ServerCompletionQueue* q) : cq(q) {
    for (int i = 0; i < kOps; i++) tags[i] = Tag{this, i};
    pending++;
    service.RequestCall(&sctx, &srv, cq, cq, &tags[kNew]);
  }
  void* tag(int op) {
    pending++;
    return &tags[op];
  }
  void PassInitialMetadata() {
    if (sent_initial) return;
    sent_initial = true;
    for (auto& kv : cctx.GetServerInitialMetadata())
      sctx.AddInitialMetadata({kv.first.data(), kv.first.size()}, {kv.second.data(), kv.second.size()});
  }
  void PassTrailingMetadata() {
    for (auto& kv : cctx.GetServerTrailingMetadata())
      sctx.AddTrailingMetadata({kv.first.data(), kv.first.size()}, {kv.second.data(), kv.second.size()});
  }
  void Proceed(int op, bool ok) {
    pending--;
    switch (op) {
      case kNew:
        if (!ok) break;
        new Call(cq);
        CopyMetadata(sctx, &cctx);
        srv.Read(&req, tag(kReqRead));
        if (!unary_mode) {
          cctx.set_initial_metadata_corked(true);  // headers leave with the first message: one batch fewer
          cli = stub->PrepareCall(&cctx, sctx.method(), cq);
          cli->StartCall(nullptr);
          cli->Read(&resp, tag(kRespRead));
        }
        break;
      case kReqRead:
        if (unary_mode) {
          if (!ok) {
            srv.Finish(grpc::Status(grpc::INTERNAL, "no message"), tag(kReply));
            break;
          }
          ucli = stub->PrepareUnaryCall(&cctx, sctx.method(), req, cq);
          ucli->StartCall();
          ucli->Finish(&resp, &status, tag(kFinish));
        } else if (ok) {
          cli->Write(req, tag(kReqWritten));
        } else {
          cli->WritesDone(tag(kReqDone));
        }
        break;
      case kReqWritten:
        if (ok) srv.Read(&req, tag(kReqRead));
        break;
      case kReqDone:
        break;
      case kRespRead:
        if (ok) {
          PassInitialMetadata();
          srv.Write(resp, tag(kRespWritten));
        } else {
          cli->Finish(&status, tag(kFinish));
        }
        break;
      case kRespWritten:
        if (ok)
          cli->Read(&resp, tag(kRespRead));
        else {
          cctx.TryCancel();
          cli->Finish(&status, tag(kFinish));
        }
        break;
      case kFinish:
        PassInitialMetadata();
        PassTrailingMetadata();
        if (unary_mode && status.ok())
          srv.WriteAndFinish(resp, grpc::WriteOptions(), status, tag(kReply));
        else
          srv.Finish(status, tag(kReply));
        break;
      case kReply:
        break;
    }
    if (!pending) delete this;
  }
};

int main(int argc, char** argv) {
  std::string listen, upstream;
  int threads = 1;
  for (int i = 1; i + 1 < argc; i += 2) {
    std::string a = argv[i];
    if (a == "--listen")
      listen = argv[i + 1];
    else if (a == "--upstream")
      upstream = argv[i + 1];
    else if (a == "--threads")
      threads = atoi(argv[i + 1]);
    else if (a == "--mode")
      unary_mode = !strcmp(argv[i + 1], "unary");
    else
      return 2;
  }
  grpc::ChannelArguments args;
  args.SetMaxReceiveMessageSize(-1);
  grpc::GenericStub s(grpc::CreateCustomChannel(upstream, grpc::InsecureChannelCredentials(), args));
  stub = &s;
  grpc::ServerBuilder b;
  b.AddListeningPort(listen, grpc::InsecureServerCredentials());
  b.RegisterAsyncGenericService(&service);
  b.SetMaxReceiveMessageSize(-1);
  std::vector<std::unique_ptr<grpc::ServerCompletionQueue>> cqs;
  for (int i = 0; i < threads; i++) cqs.push_back(b.AddCompletionQueue());
  auto server = b.BuildAndStart();
  if (!server) return 1;
  std::vector<std::thread> ts;
  for (auto& q : cqs)
    ts.emplace_back([cq = q.get()] {
      for (int i = 0; i < 256; i++) new Call(cq);  // calls accepted in parallel without waiting
      void* t;
      bool ok;
      while (cq->Next(&t, &ok)) {
        auto* tag = (Tag*)t;
        tag->call->Proceed(tag->op, ok);
      }
    });
  for (auto& t : ts) t.join();  // ends by SIGTERM
}
