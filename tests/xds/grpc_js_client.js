// A client of grpc-js with xDS, told by lines of JSON on stdin what to do; answers each with a line.
//   {op: 'owners', target, keys, cap}    the backend of each key "key-0", "key-1"...; a channel of its own. cap: of the
//                                        ring's size in the client; left out: its default
//   {op: 'spread', target, calls}        how many calls each backend has had, and how many failed
//   {op: 'lists'}                        lists of endpoints that the client has accepted, by CSDS
'use strict';
const readline = require('readline');
const grpc = require('@grpc/grpc-js');
require('@grpc/grpc-js-xds').register();
const { KEY_HEADER } = require('./lib/resources');
const { TYPES, URL_PREFIX, decode } = require('./lib/protos');

const METHOD = '/sluice.test.v1.Name/Get';
const PARALLEL = 64;
const asBytes = bytes => bytes;

// The status of a call that failed is thrown.
function call(client, key) {
  return new Promise((resolve, reject) => {
    const metadata = new grpc.Metadata();
    if (key !== null) metadata.set(KEY_HEADER, key);
    const deadline = Date.now() + 30000;
    client.makeUnaryRequest(METHOD, asBytes, asBytes, Buffer.alloc(0), metadata, { deadline },
      (error, response) => (error ? reject(error) : resolve(response.toString())));
  });
}
async function inParallel(count, run) {
  let next = 0;
  const one = async () => {
    while (next < count) await run(next++);
  };
  await Promise.all(Array.from({ length: PARALLEL }, one));
}

async function owners({ target, keys, cap }) {
  const options = cap === undefined ? {} : { 'grpc.lb.ring_hash.ring_size_cap': cap };
  const client = new grpc.Client(target, grpc.credentials.createInsecure(), options);
  const names = new Array(keys);
  await inParallel(keys, async i => { names[i] = await call(client, `key-${i}`); });
  client.close();
  return { owners: names };
}

const clients = new Map();
async function spread({ target, calls }) {
  if (!clients.has(target)) clients.set(target, new grpc.Client(target, grpc.credentials.createInsecure()));
  const seen = {};
  const errors = [];
  await inParallel(calls, async () => {
    try {
      const name = await call(clients.get(target), null);
      seen[name] = (seen[name] || 0) + 1;
    } catch (error) {
      errors.push(error.message);
    }
  });
  return { seen, failed: errors.length, error: errors[0] };
}

// The client's own status service, asked through a server in this process.
let status = null;
async function statusClient() {
  if (status !== null) return status;
  const server = new grpc.Server({ 'grpc.max_send_message_length': -1 });
  grpc.addAdminServicesToServer(server);
  const port = await new Promise((resolve, reject) => server.bindAsync(
    '127.0.0.1:0', grpc.ServerCredentials.createInsecure(), (error, bound) => (error ? reject(error) : resolve(bound))));
  status = new grpc.Client(`127.0.0.1:${port}`, grpc.credentials.createInsecure(),
    { 'grpc.max_receive_message_length': -1 });
  return status;
}
async function lists() {
  const client = await statusClient();
  const response = await new Promise((resolve, reject) => client.makeUnaryRequest(
    '/envoy.service.status.v3.ClientStatusDiscoveryService/FetchClientStatus', asBytes, asBytes, Buffer.alloc(0),
    (error, bytes) => (error ? reject(error) : resolve(bytes))));
  const out = {};
  for (const config of decode('envoy.service.status.v3.ClientStatusResponse', response).config) {
    for (const each of config.generic_xds_configs) {
      if (each.type_url !== URL_PREFIX + TYPES.eds && each.type_url !== TYPES.eds) continue;
      out[each.name] = {
        status: each.client_status,
        version: each.version_info,
        error: each.error_state ? each.error_state.details : '',
        list: each.xds_config ? Buffer.from(each.xds_config.value).toString('base64') : null,
      };
    }
  }
  return { lists: out };
}

const OPS = { owners, spread, lists };
readline.createInterface({ input: process.stdin }).on('line', async line => {
  const request = JSON.parse(line);
  let answer;
  try {
    answer = await OPS[request.op](request);
  } catch (error) {
    answer = { error: error.message };
  }
  process.stdout.write(JSON.stringify(answer) + '\n');
}).on('close', () => process.exit(0));
