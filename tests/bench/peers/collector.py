# A collector of OTLP that takes every export and keeps nothing. With its end it says how many bytes there were.
#
#   collector.py PORT
import concurrent.futures
import signal
import sys

import grpc

EXPORT = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
taken = [0, 0]


class Sink(grpc.GenericRpcHandler):
    def service(self, call):
        return grpc.unary_unary_rpc_method_handler(self.export) if call.method == EXPORT else None

    def export(self, request, _):
        taken[0] += 1
        taken[1] += len(request)
        return b""  # an empty response: nothing was refused


def main():
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(2), options=[("grpc.max_receive_message_length", 64 << 20)])
    server.add_generic_rpc_handlers((Sink(),))
    if server.add_insecure_port(f"127.0.0.1:{sys.argv[1]}") == 0:
        sys.exit(f"collector.py: port {sys.argv[1]} cannot be had")
    server.start()
    signal.sigwait({signal.SIGTERM, signal.SIGINT})
    print(f"{taken[0]} exports, {taken[1]} bytes", file=sys.stderr)
    server.stop(0).wait()


if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
    main()
