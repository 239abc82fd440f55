// grpc-js as it is by default, calling at a steady rate and holding streams open; the protocol is that of src/client.cc.
//
//   NODE_PATH=build/xds/node_modules node client.js --target 127.0.0.1:7070 --rate 700 --channels 4 --streams 30 --stream-seconds 15
'use strict';
const readline = require('readline');
const grpc = require('@grpc/grpc-js');

const CALL = '/sluice.bench.Calls/Hold';
const STREAM = '/sluice.bench.Streams/Stream';
const MESSAGE = Buffer.alloc(16, 'x');
const DEADLINE_MS = 10000;
const INTERVAL_MS = 100; // between the messages of a stream
const OUTSTANDING_MAX = 5000;
const EVENTS_MAX = 20000;

const options = {target: '127.0.0.1:7070', rate: 100, channels: 4, streams: 0, 'stream-seconds': 15};
for (let i = 2; i + 1 < process.argv.length; i += 2) {
  const name = process.argv[i].slice(2);
  options[name] = name === 'target' ? process.argv[i + 1] : Number(process.argv[i + 1]);
}

const same = (bytes) => bytes;
const now = () => performance.now();
// Without the times that differ in each message.
const text = (error) => `${grpc.status[error.code]}: ${error.details}`.replace(/ (after|within) [\d.]+s.*/, '');

// What was noticed; the same fields as src/client_tally.h.
const tally = {answeredAt: new Array(options.channels).fill(undefined), outstanding: 0};
function restart() {
  Object.assign(tally, {calls: 0, failed: {}, gap: 0, gapAt: 0, lag: 0, latencies: [], streams: 0, broken: {}, unopened: {},
    messages: 0, streamWait: 0, events: []});
}
restart();

function fail(what, status, counts) {
  counts[status] = (counts[status] || 0) + 1;
  if (tally.events.length < EVENTS_MAX) tally.events.push([Date.now() / 1000, what, status]);
}

// The one thing that is not the default: without it all channels to one target share a connection.
const clients = [];
for (let i = 0; i < options.channels; ++i) {
  clients.push(new grpc.Client(options.target, grpc.credentials.createInsecure(), {'grpc.use_local_subchannel_pool': 1}));
}

function noteGap(before, time) {
  if (before === undefined || time - before <= tally.gap) return;
  tally.gap = time - before;
  tally.gapAt = Date.now() / 1000;
}

function makeCall(channel) {
  const begun = now();
  ++tally.outstanding;
  clients[channel].makeUnaryRequest(CALL, same, same, MESSAGE, {deadline: Date.now() + DEADLINE_MS}, (error) => {
    --tally.outstanding;
    ++tally.calls;
    if (error) return fail('call', text(error), tally.failed);
    const ended = now();
    noteGap(tally.answeredAt[channel], ended);
    tally.answeredAt[channel] = ended;
    tally.latencies.push(ended - begun);
  });
}

let stopped = false;
const open = new Set();
const answered = new Array(options.streams).fill(false);

// One stream after the other: a message, its echo, a pause. Ended by the client after its time.
function hold(index, lifeMs) {
  if (stopped) return;
  const end = now() + lifeMs;
  let sent = now(), closed = false, hadAnswer = false, over = false;
  const call = clients[index % clients.length].makeBidiStreamRequest(STREAM, same, same);
  open.add(call);
  const hangs = setInterval(() => {
    if (now() - sent > DEADLINE_MS) call.cancel();
  }, 500);
  const write = () => {
    if (over) return;
    sent = now();
    if (sent >= end) {
      closed = true;
      call.end();
    } else {
      call.write(MESSAGE);
    }
  };
  const finish = (ok, status) => {
    if (over) return;
    over = true;
    clearInterval(hangs);
    open.delete(call);
    if (stopped) return;
    ++tally.streams;
    if (!ok) fail(hadAnswer ? 'stream' : 'open', status, hadAnswer ? tally.broken : tally.unopened);
    setTimeout(hold, INTERVAL_MS, index, options['stream-seconds'] * 1000);
  };
  call.on('data', () => {
    ++tally.messages;
    tally.streamWait = Math.max(tally.streamWait, now() - sent);
    hadAnswer = answered[index] = true;
    setTimeout(write, Math.max(0, sent + INTERVAL_MS - now()));
  });
  call.on('error', () => {});
  call.on('status', (status) => finish(status.code === grpc.status.OK && closed, text(status)));
  write();
}

for (let i = 0; i < options.streams; ++i) {
  hold(i, options['stream-seconds'] * 1000 * (0.2 + 0.8 * (i + 1) / options.streams)); // so that they do not all end at once
}

const start = now();
let made = 0, ready = false;
const pacer = setInterval(() => {
  const time = now();
  const due = Math.floor((time - start) * options.rate / 1000);
  if (made < due) tally.lag = Math.max(tally.lag, time - (start + made * 1000 / options.rate));
  while (made < due && tally.outstanding < OUTSTANDING_MAX) makeCall(made++ % clients.length);
  if (!ready && !tally.answeredAt.includes(undefined) && (!answered.includes(false) || time - start > DEADLINE_MS)) {
    ready = true;
    console.log('ready');
  }
}, 2);

function report() {
  const sorted = Float64Array.from(tally.latencies).sort();
  const quantile = (q) => (sorted.length ? sorted[Math.floor(q * (sorted.length - 1))] : 0);
  return JSON.stringify({client: 'js', calls: tally.calls, failed: tally.failed, gap_ms: tally.gap, gap_at: tally.gapAt,
    lag_ms: tally.lag, p50_ms: quantile(0.5), p99_ms: quantile(0.99), max_ms: quantile(1), streams: tally.streams, broken: tally.broken,
    unopened: tally.unopened, messages: tally.messages, stream_wait_ms: tally.streamWait, events: tally.events});
}

const input = readline.createInterface({input: process.stdin});
input.on('line', (line) => {
  if (line === 'go') restart();
});
input.on('close', () => {
  stopped = true;
  clearInterval(pacer);
  for (const at of tally.answeredAt) noteGap(at, now()); // a channel without an answer since long has a gap too
  for (const call of open) call.cancel();
  const end = now() + DEADLINE_MS + 5000;
  const wait = setInterval(() => {
    if (tally.outstanding !== 0 && now() < end) return;
    clearInterval(wait);
    process.stdout.write(report() + '\n', () => process.exit(0));
  }, 10);
});
