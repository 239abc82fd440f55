// An honest gRPC server on node's HTTP/2 (nghttp2), which grpc-js stands on too, without modules. As honest_backend.cc;
// `x-do: poison` ends the connection that the call came on, as a program does that a call has made fall.
'use strict';
const http2 = require('http2');

const OURS = new Set(['x-user', 'x-forwarded-for', 'x-forwarded-proto', 'x-forwarded-host', 'x-forwarded-client-cert',
  'x-request-id', 'authorization', 'grpc-timeout', 'grpc-previous-rpc-attempts', 'sluice-reason', 'sluice-hops']);

function unescape(text) {
  return text.replace(/%([0-9a-fA-F]{2})/g, (_, hex) => String.fromCharCode(parseInt(hex, 16)));
}
function plainPath(path) {
  const out = [];
  for (let segment of unescape(path.split(/[?#]/)[0]).toLowerCase().split('/')) {
    segment = segment.split(';')[0].trim();
    if (segment === '..') out.pop();
    else if (segment !== '' && segment !== '.') out.push(segment);
  }
  return out.map((segment) => '/' + segment).join('');
}
function plainHost(authority) {
  return authority.trim().toLowerCase().replace(/^.*@/, '').replace(/[^a-z0-9._-].*$/, '').replace(/\.+$/, '');
}
// raw: name, value, name, value.
function whyNot(raw, guarded) {
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const name = raw[i], value = raw[i + 1];
    if (value.includes('evil') && OURS.has(name.toLowerCase().replace(/_/g, '-'))) return `a client's own ${name}: ${value}`;
    for (const member of value.split(',').map((part) => part.trim())) {
      let bytes = member;
      if (name.endsWith('-bin')) {
        const digits = member.replace(/=+$/, '');
        if (!/^[A-Za-z0-9+/]*$/.test(digits) || digits.length % 4 === 1) return `${name} is no base64: ${member}`;
        bytes = Buffer.from(digits, 'base64').toString('latin1');
      }
      if (guarded && (name === 'x-role' || name === 'x-role-bin') && bytes === 'admin') return `${name} has the member admin: ${value}`;
      if (guarded && name === 'x-scope' && !bytes.startsWith('read')) return `x-scope has another member than read: ${value}`;
    }
  }
  return '';
}
function tell(why) {
  if (why !== '') console.log('VIOLATION node has seen what it must not: ' + why);
}

// Bounds of node's that its peers are not told, and that end a connection: how many streams are reset, or have too many fields.
const server = http2.createServer({streamResetBurst: 1e6, streamResetRate: 1e6, maxHeaderListPairs: 4000,
  maxSessionRejectedStreams: 1e6, maxSessionInvalidFrames: 1e6});
// A session's own `socket` refuses to be destroyed.
const sockets = new WeakMap();
let newest;
server.prependListener('connection', (socket) => { newest = socket; });
server.on('stream', (stream, headers, flags, raw) => {
  stream.on('error', () => {});
  const path = headers[':path'] || '', plain = plainPath(path), guarded = plain.startsWith('/t.guarded/');
  if (plain === '/t.admin/delete') tell('the path ' + path);
  else if (plainHost(headers[':authority'] || '') === 'admin.test') tell('the authority ' + headers[':authority']);
  else tell(whyNot(raw, guarded));
  stream.on('trailers', (_, __, rawTrailers) => tell(whyNot(rawTrailers || [], guarded)));
  const order = Object.fromEntries((headers['x-do'] || '').split(';').map((part) => {
    const at = part.indexOf('=');
    return at < 0 ? [part, '1'] : [part.slice(0, at), part.slice(at + 1)];
  }));
  if (order.poison) {
    console.log('ENDED');
    sockets.get(stream.session).destroy();
    return;
  }
  const trailers = {'grpc-status': order.status || '0'};
  if (order.message) trailers['grpc-message'] = order.message;
  if (order.trailer) trailers['x-long'] = 't'.repeat(Math.min(Number(order.trailer), 131072));
  const answer = () => {
    if (stream.destroyed) return;
    stream.respond({':status': 200, 'content-type': 'application/grpc', 'x-backend': 'node', 'x-id': headers['x-id'] || ''},
      {waitForTrailers: true});
    stream.on('wantTrailers', () => {
      try {
        stream.sendTrailers(trailers);
      } catch (error) {
        stream.close(http2.constants.NGHTTP2_INTERNAL_ERROR);
      }
    });
    stream.end(order.status ? undefined : Buffer.concat(body));
  };
  // At once and whole: a call that a poison's connection takes along has seen nothing of its answer, and can be repeated.
  const body = [];
  stream.on('data', (chunk) => body.push(chunk));
  stream.on('end', () => {
    if (order.delay) setTimeout(answer, Math.min(Number(order.delay), 5000));
    else answer();
  });
});
server.on('sessionError', () => {});
server.on('session', (session) => {
  sockets.set(session, newest);
  session.on('error', () => {});
});
server.listen(0, '127.0.0.1', () => console.log('listening on ' + server.address().port));
// Lives as long as the harness: its end of the pipe closes with it.
process.stdin.on('end', () => process.exit(0));
process.stdin.resume();
process.on('uncaughtException', (error) => console.log('VIOLATION node failed: ' + error.stack.replace(/\n/g, ' ')));
