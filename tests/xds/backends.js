// Backends on many addresses of the loopback network, all on one port. Each answers every call with its own name.
//   fork('backends.js', [first, count, port])    messages: {port} when all listen
'use strict';
const http2 = require('http2');
const net = require('net');
const { addressOf } = require('./lib/fleet');

const [first, count, wanted] = process.argv.slice(2).map(Number);

const calls = http2.createServer();
calls.on('stream', stream => {
  const name = Buffer.from(`${stream.session.socket.localAddress}:${stream.session.socket.localPort}`);
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(name.length, 1);
  stream.on('error', () => {});
  stream.resume();
  stream.on('end', () => {
    if (stream.destroyed) return;
    stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true });
    stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
    stream.end(Buffer.concat([prefix, name]));
  });
});
calls.on('session', session => session.on('error', () => {}));
calls.on('sessionError', () => {});

function listen(host, port) {
  return new Promise((resolve, reject) => {
    const server = net.createServer(socket => {
      socket.on('error', () => {});
      calls.emit('connection', socket);
    });
    server.once('error', reject);
    server.listen({ host, port, backlog: 128 }, () => resolve(server));
  });
}

// The port that the first address gets must be free on all others: another one is tried where it is not.
async function listenOnAll() {
  for (let attempt = 0; ; ++attempt) {
    const servers = [];
    try {
      let port = wanted;
      for (let i = first; i < first + count; ++i) {
        const server = await listen(addressOf(i), port);
        servers.push(server);
        port = server.address().port;
      }
      return port;
    } catch (error) {
      servers.forEach(server => server.close());
      if (error.code !== 'EADDRINUSE' || wanted !== 0 || attempt === 20) throw error;
    }
  }
}

listenOnAll().then(port => process.send({ port }));
process.on('disconnect', () => process.exit(0));
