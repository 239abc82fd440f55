#include "support/echo_call.h"

namespace sluice::integration {

using echo::v1::EchoReply;
using echo::v1::EchoRequest;

namespace {

std::multimap<std::string, std::string> Copy(const std::multimap<grpc::string_ref, grpc::string_ref>& metadata) {
  std::multimap<std::string, std::string> copy;
  for (const auto& [name, value] : metadata) {
    copy.emplace(std::string(name.data(), name.size()), std::string(value.data(), value.size()));
  }
  return copy;
}

std::string Only(const std::multimap<std::string, std::string>& metadata, const std::string& name) {
  return metadata.count(name) == 1 ? metadata.find(name)->second : "";
}

}  // namespace

std::string ToString(Kind kind) {
  switch (kind) {
    case Kind::kUnary:
      return "Unary";
    case Kind::kServerStream:
      return "ServerStream";
    case Kind::kClientStream:
      return "ClientStream";
    case Kind::kBidiStream:
      return "BidiStream";
  }
  return "";
}

std::shared_ptr<grpc::Channel> Connect(const std::string& target,
                                       std::shared_ptr<grpc::ChannelCredentials> credentials) {
  if (credentials == nullptr) credentials = grpc::InsecureChannelCredentials();
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetInt(GRPC_ARG_MAX_METADATA_SIZE, 1 << 20);
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetMaxSendMessageSize(-1);
  return grpc::CreateCustomChannel(target, credentials, arguments);
}

std::string Reply::Header(const std::string& name) const { return Only(headers, name); }
std::string Reply::Trailer(const std::string& name) const { return Only(trailers, name); }

std::string Describe(const grpc::Status& status) {
  return "code " + std::to_string(status.error_code()) + " (" + status.error_message() + ")";
}

Reply Call(echo::v1::Echo::Stub* stub, Kind kind, grpc::ClientContext* context, const EchoRequest& request,
           int messages) {
  Reply result;
  EchoReply reply;
  switch (kind) {
    case Kind::kUnary:
      result.status = stub->Unary(context, request, &reply);
      if (result.status.ok()) result.messages.push_back(std::move(reply));
      break;
    case Kind::kServerStream: {
      auto reader = stub->ServerStream(context, request);
      while (reader->Read(&reply)) result.messages.push_back(std::move(reply));
      result.status = reader->Finish();
      break;
    }
    case Kind::kClientStream: {
      auto writer = stub->ClientStream(context, &reply);
      for (int i = 0; i < messages && writer->Write(request); ++i) {
      }
      writer->WritesDone();
      result.status = writer->Finish();
      if (result.status.ok()) result.messages.push_back(std::move(reply));
      break;
    }
    case Kind::kBidiStream: {
      auto stream = stub->BidiStream(context);
      for (int i = 0; i < messages && stream->Write(request); ++i) {
        if (request.no_reply()) continue;
        if (!stream->Read(&reply)) break;
        result.messages.push_back(std::move(reply));
      }
      stream->WritesDone();
      while (stream->Read(&reply)) result.messages.push_back(std::move(reply));
      result.status = stream->Finish();
      break;
    }
  }
  result.headers = Copy(context->GetServerInitialMetadata());
  result.trailers = Copy(context->GetServerTrailingMetadata());
  return result;
}

}  // namespace sluice::integration
