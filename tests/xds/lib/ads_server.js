// An ADS server, state of the world: what it serves is set by the test, and what clients say of it is kept.
//
// A client is told of a type when it asks for other names than before, or when a resource of the type has changed. An
// ACK or a NACK is not answered: a client that refuses a resource hears of it again when it changes.
'use strict';
const net = require('net');
const grpc = require('@grpc/grpc-js');
const { TYPES, URL_PREFIX, decode, encode } = require('./protos');

const REQUEST = 'envoy.service.discovery.v3.DiscoveryRequest';
const RESPONSE = 'envoy.service.discovery.v3.DiscoveryResponse';
const SERVICE = {
  StreamAggregatedResources: {
    path: '/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources',
    requestStream: true,
    responseStream: true,
    requestSerialize: bytes => bytes,
    requestDeserialize: bytes => decode(REQUEST, bytes),
    responseSerialize: bytes => bytes,
    responseDeserialize: bytes => bytes,
  },
};
// In this order a client learns of a cluster before its list.
const ORDER = ['cds', 'eds', 'lds', 'rds'];
const kindOf = url => Object.keys(TYPES).find(kind => URL_PREFIX + TYPES[kind] === url);

class AdsServer {
  constructor() {
    this.kinds = {};
    for (const kind of ORDER) this.kinds[kind] = { version: 0, resources: new Map() };
    this.streams = new Set();
    this.port = 0;  // clients connect to this one; behind it is the server, at a port of its own
    this.behind = null;
    this.front = null;
    this.sockets = new Set();
    this.answers = [];  // {client, kind, version, error}: error is empty for an ACK
    this.waiting = [];
  }

  async start() {
    this.server = new grpc.Server({ 'grpc.max_receive_message_length': -1, 'grpc.max_send_message_length': -1 });
    this.server.addService(SERVICE, { StreamAggregatedResources: call => this.serve(call) });
    this.behind = await new Promise((resolve, reject) => this.server.bindAsync(
      '127.0.0.1:0', grpc.ServerCredentials.createInsecure(),
      (error, port) => (error ? reject(error) : resolve(port))));
    for (const socket of this.sockets) this.connect(socket);
    if (this.front === null) await this.listen();
  }
  listen() {
    this.front = net.createServer(socket => {
      this.sockets.add(socket);
      socket.on('error', () => {});
      socket.on('close', () => this.sockets.delete(socket));
      if (this.behind !== null) this.connect(socket);
    });
    return new Promise((resolve, reject) => {
      this.front.once('error', reject);
      this.front.listen({ host: '127.0.0.1', port: this.port }, () => {
        this.port = this.front.address().port;
        resolve();
      });
    });
  }
  connect(socket) {
    const server = net.connect(this.behind, '127.0.0.1');
    server.on('error', () => {});
    server.on('close', () => socket.destroy());
    socket.on('close', () => server.destroy());
    socket.pipe(server);
    server.pipe(socket);
  }
  // All connections break. What was set stays, and so does the port, where new ones wait for the next start; refuse: or
  // are refused.
  stop(refuse = false) {
    this.behind = null;
    for (const socket of this.sockets) socket.destroy();
    if (refuse) {
      this.front.close();
      this.front = null;
    }
    this.server.forceShutdown();
    this.streams.clear();
  }

  // resource: an object; a Buffer is sent as it is; null takes the resource away.
  set(kind, name, resource) {
    const state = this.kinds[kind];
    if (resource === null) {
      state.resources.delete(name);
    } else {
      state.resources.set(name, Buffer.isBuffer(resource) ? resource : encode(TYPES[kind], resource));
    }
    ++state.version;
    for (const stream of this.streams) this.send(stream, kind, kind === 'eds' ? [name] : null);
    return state.version;
  }

  serve(call) {
    const stream = { call, client: '', asked: {}, sent: {}, nonce: 0 };
    this.streams.add(stream);
    const end = () => this.streams.delete(stream);
    call.on('data', request => this.take(stream, request));
    call.on('end', () => { end(); call.end(); });
    call.on('cancelled', end);
    call.on('error', end);
  }
  take(stream, request) {
    if (request.node && request.node.id) stream.client = request.node.id;
    const kind = kindOf(request.type_url);
    if (kind === undefined) return;
    const sent = stream.sent[kind];
    if (request.response_nonce !== '') {
      if (sent === undefined || request.response_nonce !== sent.nonce) return;  // of an answer before the last one
      if (!sent.answered) {
        sent.answered = true;
        const error = request.error_detail ? request.error_detail.message : '';
        this.answers.push({ client: stream.client, kind, version: sent.version, error });
        this.wake();
      }
    }
    const before = stream.asked[kind];
    const names = new Set(request.resource_names);
    stream.asked[kind] = names;
    const more = before === undefined ? null : request.resource_names.filter(name => !before.has(name));
    if (more === null || more.length > 0) this.send(stream, kind, kind === 'eds' ? more : null);
  }
  // only: of these names; null: all that the client has asked for. Lists of listeners and clusters are always whole.
  send(stream, kind, only) {
    const names = stream.asked[kind];
    if (names === undefined) return;
    const { version, resources } = this.kinds[kind];
    const chosen = [...names].filter(name => resources.has(name) && (only === null || only.includes(name)));
    if (only !== null && chosen.length === 0) return;
    const nonce = String(++stream.nonce);
    stream.sent[kind] = { nonce, version, answered: false };
    stream.call.write(encode(RESPONSE, {
      version_info: String(version),
      type_url: URL_PREFIX + TYPES[kind],
      nonce,
      resources: chosen.map(name => ({ type_url: URL_PREFIX + TYPES[kind], value: resources.get(name) })),
    }));
  }

  // Whether that client has a stream.
  serves(client) {
    return [...this.streams].some(stream => stream.client === client);
  }
  wake() {
    for (const check of [...this.waiting]) check();
  }
  // The answers of these clients to that version of the kind, by client: '' for an ACK, else the error.
  async answered(kind, version, clients, milliseconds) {
    const found = () => {
      const out = {};
      for (const answer of this.answers) {
        if (answer.kind === kind && answer.version === version) out[answer.client] = answer.error;
      }
      return out;
    };
    const all = () => clients.every(client => client in found());
    if (all()) return found();
    return new Promise((resolve, reject) => {
      const done = () => {
        clearTimeout(timer);
        this.waiting.splice(this.waiting.indexOf(check), 1);
      };
      const check = () => {
        if (!all()) return;
        done();
        resolve(found());
      };
      const timer = setTimeout(() => {
        done();
        const silent = clients.filter(client => !(client in found()));
        reject(new Error(`no answer to ${kind} version ${version} from: ${silent}`));
      }, milliseconds);
      this.waiting.push(check);
    });
  }
}

module.exports = { AdsServer };
