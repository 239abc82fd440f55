// What the test asks of the page: `call` and `stream` by the library `kind`, each with all that a script can know of it.
//   kinds: "text", "binary" (npm's grpc-web), "connect" (connect-web)
// A result: {messages: [bytes of each payload], initial, code, message, trailing, times}. Codes are gRPC's numbers.
import { Code, ConnectError, createClient } from '@connectrpc/connect';
import { createGrpcWebTransport } from '@connectrpc/connect-web';
import { createFileRegistry, fromBinary } from '@bufbuild/protobuf';
import { FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';

const types = window.protobuf.parse(await (await fetch('/test_service.proto')).text(), { keepCase: true }).root;
const registry = createFileRegistry(
  fromBinary(FileDescriptorSetSchema, new Uint8Array(await (await fetch('/test_service.pb')).arrayBuffer())));

const lower = headers => Object.fromEntries(Object.entries(headers || {}).map(([name, value]) => [name.toLowerCase(), value]));
const sizeOf = message => (message.payload && message.payload.body ? message.payload.body.length : 0);

function descriptorOf(service, method) {
  const found = types.lookupService(`grpc.testing.${service}`).methods[method];
  const [request, response] = [found.requestType, found.responseType].map(name => types.lookupType(`grpc.testing.${name}`));
  return new window.grpcWeb.MethodDescriptor(
    `/grpc.testing.${service}/${method}`,
    found.responseStream ? window.grpcWeb.MethodType.SERVER_STREAMING : window.grpcWeb.MethodType.UNARY,
    Object, Object,
    value => request.encode(request.fromObject(value)).finish(), bytes => response.decode(bytes));
}

// `cancelAfter`: messages after which the page cancels; then the result is what it has.
function byGrpcWeb({ kind, url, service, method, request, metadata, withCredentials, cancelAfter }) {
  const client = new window.grpcWeb.GrpcWebClientBase({ format: kind, withCredentials });
  const descriptor = descriptorOf(service, method);
  const result = { messages: [], times: [], initial: {}, code: null, message: '', trailing: {} };
  const started = performance.now();
  return new Promise(resolve => {
    const streaming = descriptor.getMethodDescriptorType
      ? false : types.lookupService(`grpc.testing.${service}`).methods[method].responseStream;
    const take = message => {
      result.messages.push(sizeOf(message));
      result.times.push(performance.now() - started);
    };
    const fail = error => {
      result.code = error.code;
      result.message = error.message;
      result.trailing = { ...result.trailing, ...lower(error.metadata) };
    };
    const path = `${url}${`/grpc.testing.${service}/${method}`}`;
    const call = streaming
      ? client.serverStreaming(path, request, metadata, descriptor)
      : client.rpcCall(path, request, metadata, descriptor, (error, response) => {
        if (error) {
          fail(error);
        } else if (response) {
          take(response);
          result.code = 0;
        }
        setTimeout(() => resolve(result), 0); // what is told in the same turn is of this call too
      });
    call.on('metadata', initial => { result.initial = lower(initial); });
    call.on('status', status => {
      result.trailing = { ...result.trailing, ...lower(status.metadata) };
      if (streaming) [result.code, result.message] = [status.code, status.details];
    });
    if (!streaming) return;
    call.on('data', message => {
      take(message);
      if (result.messages.length === cancelAfter) {
        call.cancel();
        resolve(result);
      }
    });
    call.on('error', fail);
    call.on('error', () => setTimeout(() => resolve(result), 0));
    call.on('end', () => setTimeout(() => resolve(result), 0));
  });
}

// protobuf-es names fields in camel case, and bytes are bytes.
function camel(value) {
  if (Array.isArray(value)) return value.map(camel);
  if (value === null || typeof value !== 'object' || value instanceof Uint8Array) return value;
  return Object.fromEntries(Object.entries(value).map(([name, inner]) =>
    [name.replace(/_(.)/g, (_, letter) => letter.toUpperCase()), camel(inner)]));
}

async function byConnect({ url, service, method, request, metadata, cancelAfter, timeoutMs }) {
  const transport = createGrpcWebTransport({ baseUrl: url });
  const client = createClient(registry.getService(`grpc.testing.${service}`), transport);
  const name = method[0].toLowerCase() + method.slice(1);
  const result = { messages: [], times: [], initial: {}, code: null, message: '', trailing: {} };
  const abort = new AbortController();
  const started = performance.now();
  const options = {
    headers: metadata, signal: abort.signal, timeoutMs,
    onHeader: headers => { result.initial = Object.fromEntries(headers); },
    onTrailer: trailers => { result.trailing = Object.fromEntries(trailers); },
  };
  const take = message => {
    result.messages.push(sizeOf(message));
    result.times.push(performance.now() - started);
  };
  try {
    const answer = client[name](camel(request), options);
    if (Symbol.asyncIterator in answer) {
      for await (const message of answer) {
        take(message);
        if (result.messages.length === cancelAfter) {
          abort.abort();
          return result;
        }
      }
    } else {
      take(await answer);
    }
    result.code = 0;
  } catch (error) {
    const known = ConnectError.from(error);
    result.code = known.code;
    result.message = known.rawMessage;
    result.trailing = { ...result.trailing, ...Object.fromEntries(known.metadata) };
  }
  return result;
}

window.call = options => {
  const all = { service: 'TestService', request: {}, metadata: {}, ...options };
  if (typeof all.payload === 'number') all.request = { ...all.request, payload: { body: new Uint8Array(all.payload) } };
  return all.kind === 'connect' ? byConnect(all) : byGrpcWeb(all);
};
// A body as it is, by fetch alone: {status, headers, bytes or the error}.
window.raw = async ({ url, path, headers, body }) => {
  try {
    const response = await fetch(url + path, { method: 'POST', headers, body });
    const text = await response.text();
    return { status: response.status, headers: Object.fromEntries(response.headers), text };
  } catch (error) {
    return { error: String(error) };
  }
};
window.ready = true;
