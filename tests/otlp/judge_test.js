// Decodes what Sluice exports with OpenTelemetry's own library, and compares each field with the calls that were made.
//   judge_test.js BIN
'use strict';
const assert = require('assert');
const { spawn } = require('child_process');
const fs = require('fs');
const grpc = require('@grpc/grpc-js');
const os = require('os');
const path = require('path');

const [bin] = process.argv.slice(2);
const LONG_MS = 30000;
// The library's decoder: not one of the entries that it names, so it is found by its place.
const transformer = path.dirname(require.resolve('@opentelemetry/otlp-transformer/package.json'));
const root = require(path.join(transformer, 'build', 'src', 'generated', 'root.js'));
const Request = root.opentelemetry.proto.collector.trace.v1.ExportTraceServiceRequest;

const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'sluice-otlp-'));
let daemon;
process.on('exit', () => {
  if (daemon) daemon.kill('SIGKILL');
  fs.rmSync(directory, { recursive: true, force: true });
});
setTimeout(() => {
  console.error(`not within ${LONG_MS} ms`);
  process.exit(1);
}, LONG_MS).unref();

const bytes = { requestSerialize: b => b, requestDeserialize: b => b, responseSerialize: b => b, responseDeserialize: b => b };
function method(path) {
  return { path, requestStream: false, responseStream: false, ...bytes };
}
const EXPORT = method('/opentelemetry.proto.collector.trace.v1.TraceService/Export');
const ADD = method('/shop.Cart/Add');
const FAIL = method('/shop.Cart/Fail');

function listen(services) {
  const server = new grpc.Server();
  for (const [definition, handler] of services) server.addService({ it: definition }, { it: handler });
  return new Promise((resolve, reject) => server.bindAsync('127.0.0.1:0', grpc.ServerCredentials.createInsecure(),
    (error, port) => (error ? reject(error) : resolve([server, port]))));
}

const exported = [];
let wake = () => {};
async function spans(count) {
  const all = () => exported.flatMap(r => r.resourceSpans).flatMap(r => r.scopeSpans).flatMap(s => s.spans);
  while (all().length < count) await new Promise(resolve => { wake = resolve; });
  return all();
}

function call(client, definition, metadata) {
  const told = new grpc.Metadata();
  for (const [name, value] of Object.entries(metadata)) told.add(name, value);
  return new Promise(resolve => client.makeUnaryRequest(definition.path, bytes.requestSerialize, bytes.responseDeserialize,
    Buffer.from('ask'), told, { deadline: Date.now() + LONG_MS }, error => resolve(error ? error.code : 0)));
}

const hex = data => Buffer.from(data || []).toString('hex');
function attributes(list) {
  return Object.fromEntries(list.map(({ key, value }) => {
    const kinds = Object.keys(value).filter(kind => value[kind] !== null && value[kind] !== undefined);
    assert.strictEqual(kinds.length, 1, `${key} has one value`);
    const held = value[kinds[0]];
    return [key, kinds[0] === 'intValue' ? Number(held) : held];
  }));
}
function nanos(time) {
  return BigInt(time.toString());
}

async function main() {
  const [collector, collectorPort] = await listen([[EXPORT, (request, answer) => {
    const decoded = Request.decode(request.request);
    // Nothing is there that the library does not know, and all is written as it would write it.
    assert.strictEqual(hex(Request.encode(decoded).finish()), hex(request.request));
    exported.push(decoded);
    answer(null, Buffer.alloc(0));
    wake();
  }]]);
  const parents = [];
  let failures = 0;
  const [backend, backendPort] = await listen([
    [ADD, (request, answer) => {
      parents.push(request.metadata.get('traceparent')[0]);
      answer(null, Buffer.from('answer'));
    }],
    [FAIL, (request, answer) => {
      parents.push(request.metadata.get('traceparent')[0]);
      failures += 1;
      answer({ code: grpc.status.UNAVAILABLE, details: 'sick' });
    }]]);
  const listener = `unix:${path.join(directory, 'calls.sock')}`;
  const config = path.join(directory, 'sluice.yaml');
  fs.writeFileSync(config, `listeners: [{address: "${listener}"}]
admin: {grpc: ""}
clusters: [{name: carts, endpoints: [{name: one, address: "127.0.0.1:${backendPort}"}], retry_budget: {ratio: 1}}]
routes: [{name: shop, cluster: carts, retry: {methods: all, attempts: 2}}]
tracing: {endpoint: "127.0.0.1:${collectorPort}", service_name: judge}
`);
  daemon = spawn(path.join(bin, 'sluiced'), ['-c', config], { stdio: ['ignore', 'inherit', 'inherit'] });
  const client = new grpc.Client(listener, grpc.credentials.createInsecure(), { 'grpc.default_authority': 'shop.test' });
  await new Promise((resolve, reject) => client.waitForReady(Date.now() + LONG_MS, error => (error ? reject(error) : resolve())));

  const before = BigInt(Date.now()) * 1000000n;
  const trace = '0af7651916cd43dd8448eb211c80319c';
  const parent = 'b7ad6b7169203331';
  assert.strictEqual(await call(client, ADD, { traceparent: `00-${trace}-${parent}-01`, tracestate: 'a=1,b=2' }), 0);
  let seen = await spans(2);
  assert.strictEqual(seen.length, 2);
  const server = seen.find(span => span.kind === 2);
  const attempt = seen.find(span => span.kind === 3);
  const resource = exported[0].resourceSpans[0];
  assert.deepStrictEqual(attributes(resource.resource.attributes), { 'service.name': 'judge' });
  assert.strictEqual(resource.scopeSpans[0].scope.name, 'sluice');
  for (const span of [server, attempt]) {
    assert.strictEqual(hex(span.traceId), trace);
    assert.strictEqual(span.spanId.length, 8);
    assert.strictEqual(span.name, 'shop.Cart/Add');
    assert.strictEqual(span.traceState, 'a=1,b=2');
    assert.ok(nanos(span.startTimeUnixNano) >= before - 1000000000n);
    assert.ok(nanos(span.endTimeUnixNano) >= nanos(span.startTimeUnixNano));
    assert.ok(nanos(span.endTimeUnixNano) <= BigInt(Date.now() + 1000) * 1000000n);
  }
  assert.strictEqual(hex(server.parentSpanId), parent);
  assert.strictEqual(hex(attempt.parentSpanId), hex(server.spanId));
  assert.strictEqual(parents[0], `00-${trace}-${hex(attempt.spanId)}-01`);
  const rpc = { 'rpc.system': 'grpc', 'rpc.service': 'shop.Cart', 'rpc.method': 'Add', 'rpc.grpc.status_code': 0 };
  const told = attributes(server.attributes);
  assert.ok(told['client.address'].length > 0);
  delete told['client.address'];
  assert.deepStrictEqual(told, { ...rpc, 'server.address': 'shop.test', 'sluice.route': 'shop', 'sluice.cluster': 'carts',
    'sluice.attempts': 1, 'sluice.request_bytes': 8, 'sluice.response_bytes': 11 });
  assert.deepStrictEqual(attributes(attempt.attributes), { ...rpc, 'sluice.endpoint': 'one', 'sluice.attempt': 1, 'sluice.end': 'OK' });
  assert.deepStrictEqual(server.events.map(event => event.name), ['sent', 'response']);
  for (const event of server.events) {
    assert.ok(nanos(event.timeUnixNano) >= nanos(server.startTimeUnixNano) && nanos(event.timeUnixNano) <= nanos(server.endTimeUnixNano));
  }

  // A failure without a caller's word: two attempts, and a status.
  assert.strictEqual(await call(client, FAIL, {}), grpc.status.UNAVAILABLE);
  seen = (await spans(5)).slice(2);
  assert.strictEqual(failures, 2);
  const failed = seen.find(span => span.kind === 2);
  const attempts = seen.filter(span => span.kind === 3);
  assert.strictEqual(hex(failed.parentSpanId), '');
  assert.strictEqual(failed.status.code, 2);
  assert.strictEqual(attributes(failed.attributes)['rpc.grpc.status_code'], 14);
  assert.strictEqual(attributes(failed.attributes)['sluice.attempts'], 2);
  assert.strictEqual(attempts.length, 2);
  for (const span of attempts) {
    assert.strictEqual(hex(span.parentSpanId), hex(failed.spanId));
    assert.strictEqual(span.status.code, 2);
    assert.strictEqual(span.status.message, 'UNAVAILABLE');
  }
  assert.deepStrictEqual(parents.slice(1), [undefined, undefined]);  // its headers were not touched

  client.close();
  daemon.kill('SIGTERM');
  const code = await new Promise(resolve => daemon.once('exit', resolve));
  assert.strictEqual(code, 0);
  collector.forceShutdown();
  backend.forceShutdown();
  console.log(`${exported.length} exports, ${(await spans(5)).length} spans, each as the library has it`);
}

main().catch(error => {
  console.error(error);
  process.exit(1);
});
