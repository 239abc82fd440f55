// Programs that a test starts, each ended with it: backends, clients, daemons.
'use strict';
const { fork, spawn } = require('child_process');
const path = require('path');
const readline = require('readline');

// Of backend i; distinct for i below 50,000.
function addressOf(i) {
  return `127.${1 + Math.floor(i / 50000)}.${Math.floor(i / 250) % 200}.${1 + (i % 250)}`;
}

const started = [];
function keep(child) {
  started.push(child);
  return child;
}
function endAll() {
  for (const child of started) child.kill('SIGKILL');
}
process.on('exit', endAll);
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => process.exit(1));

function within(milliseconds, what, promise) {
  let timer;
  const late = new Promise((resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`not within ${milliseconds} ms: ${what}`)), milliseconds);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

// `count` backends, a process for each 2,500 of them: a process may have 20,000 descriptors. The port of all.
async function startBackends(count) {
  let port = 0;
  for (let first = 0; first < count; first += 2500) {
    const size = Math.min(2500, count - first);
    const child = keep(fork(path.join(__dirname, '..', 'backends.js'), [first, size, port].map(String)));
    const message = await within(60000, 'backends listen', new Promise((resolve, reject) => {
      child.once('message', resolve);
      child.once('exit', code => reject(new Error(`backends ended with ${code}`)));
    }));
    port = message.port;
  }
  return port;
}

// A program that answers each line with a line, both JSON. One request at a time.
class Talker {
  constructor(command, args, env) {
    this.child = keep(spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'], env: { GRPC_VERBOSITY: 'NONE', ...process.env, ...env } }));
    this.name = path.basename(args[0] || command);
    this.pending = null;
    this.ended = false;
    readline.createInterface({ input: this.child.stdout }).on('line', line => {
      const pending = this.pending;
      this.pending = null;
      if (pending !== null) pending.resolve(JSON.parse(line));
    });
    this.child.on('exit', (code, signal) => {
      this.ended = true;
      if (this.pending !== null) this.pending.reject(new Error(`${this.name} ended: ${code} ${signal}`));
    });
  }
  end() {
    this.child.kill('SIGKILL');
  }
  ask(request, milliseconds = 300000) {
    if (this.ended) return Promise.reject(new Error(`${this.name} has ended`));
    const answer = new Promise((resolve, reject) => { this.pending = { resolve, reject }; });
    this.child.stdin.write(JSON.stringify(request) + '\n');
    return within(milliseconds, `${this.name}: ${JSON.stringify(request).slice(0, 200)}`, answer);
  }
}

function bootstrap(port, id) {
  return JSON.stringify({
    xds_servers: [{
      server_uri: `127.0.0.1:${port}`,
      channel_creds: [{ type: 'insecure' }],
      server_features: ['xds_v3'],
    }],
    node: { id, cluster: 'tests', locality: { region: 'r', zone: 'here', sub_zone: '' } },
  });
}

module.exports = { Talker, addressOf, bootstrap, endAll, keep, startBackends, within };
