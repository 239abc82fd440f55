// Random updates by one ADS server to gRPC C++, grpc-js and Sluice: after each, all have the same list. Among them are
// lists that must be refused, restarts of the server, and lists of 0, 1, 1,000 and 10,000 endpoints. Calls go through
// Sluice all the time, and none may fail.
//   updates_test.js BIN UPDATES SEED [PEERS]    PEERS: of grpc-cpp, grpc-js, sluice; all by default
'use strict';
const fs = require('fs');
const grpc = require('@grpc/grpc-js');
const os = require('os');
const path = require('path');
const { AdsServer } = require('./lib/ads_server');
const { Talker, bootstrap, endAll, startBackends, within } = require('./lib/fleet');
const { decode, TYPES } = require('./lib/protos');
const { RandomFleet, membersOf, membersOfAssignment, sameButForScale, textOf } = require('./lib/random_fleet');
const { assignment, cluster, listener, routes } = require('./lib/resources');
const { Sluice } = require('./lib/sluice');

const [bin, updates, seed, peers = 'grpc-cpp,grpc-js,sluice'] = process.argv.slice(2);
const has = peer => peers.split(',').includes(peer);
const CLUSTER = 'users';
const LIST = 'fleet';
const LARGE = 1000;
const HUGE = 10000;
const CALLED_MAX = 60;  // longer lists are compared, but not called through each client
// grpc-js waits for up to two minutes before it connects again.
const SETTLES_MS = 150000;
const LOST_MS = 30000;  // a grpc-js without a stream for so long is replaced
const HUGE_SETTLES_MS = 400000;  // grpc-js takes a minute for 10,000 endpoints
const SLOW_MS = 10000;  // such an update is printed

// Asks until the answer is good; the last answer is in the error.
async function until(what, milliseconds, ask, good) {
  const end = Date.now() + milliseconds;
  for (;;) {
    const answer = await ask();
    if (good(answer)) return answer;
    if (Date.now() > end) throw new Error(`${what}: ${String(answer.text || JSON.stringify(answer)).slice(0, 3000)}`);
    await new Promise(resolve => setImmediate(resolve));
  }
}

// A gRPC client by its process: what it has accepted, and which backends it calls.
class Peer {
  constructor(id, start) {
    this.id = id;
    this.start = start;
    this.talker = start();
  }
  async begin() {
    // The channel begins to live with a call.
    await this.talker.ask({ op: 'spread', target: `xds:///${CLUSTER}`, calls: 1 });
  }
  async replace() {
    this.talker.end();
    this.talker = this.start();
    await this.begin();
  }
  // {text: of the list; null: it does not say, as it has refused a newer one; error: why}
  async list() {
    const answer = await this.talker.ask({ op: 'lists' });
    if (answer.lists !== undefined) {
      const each = answer.lists[LIST];
      if (each === undefined) return { text: '', error: '' };
      const text = each.list === null ? null :
        textOf(membersOfAssignment(decode(TYPES.eds, Buffer.from(each.list, 'base64'))));
      return { text, error: each.error };
    }
    const config = decode('envoy.service.status.v3.ClientConfig', Buffer.from(answer.config, 'base64'));
    const each = config.generic_xds_configs.find(one => one.name === LIST);
    if (each === undefined) return { text: '', error: '' };
    return {
      text: each.xds_config ? textOf(membersOfAssignment(decode(TYPES.eds, each.xds_config.value))) : null,
      error: each.error_state ? each.error_state.details : '',
    };
  }
  // Calls until a row of calls has gone to all of these names and to no other.
  async reaches(names, target) {
    const wanted = new Set(names);
    let seen = new Set();
    await until(`${this.id} calls ${target}`, SETTLES_MS, async () => {
      const answer = await this.talker.ask({ op: 'spread', target, calls: 20 + 4 * wanted.size });
      const strangers = Object.keys(answer.seen || {}).filter(name => !wanted.has(name));
      if (answer.failed > 0 || strangers.length > 0) seen = new Set();
      else for (const name of Object.keys(answer.seen)) seen.add(name);
      const missing = names.filter(name => !seen.has(name));
      return { strangers, missing, failed: answer.failed, error: answer.error };
    }, state => state.failed === 0 && state.strangers.length === 0 && state.missing.length === 0);
  }
}

class SluicePeer {
  constructor(sluice) {
    this.id = 'sluice';
    this.sluice = sluice;
    this.load = { calls: 0, failed: 0, errors: new Set(), going: true };
  }
  async list() {
    const [answer] = JSON.parse(await this.sluice.ctl('--json', 'endpoints', 'fleet')).clusters;
    return {
      members: answer.endpoints.filter(each => each.state !== 'STATE_REMOVED').map(each => ({
        name: each.address, weight: each.weight, priority: each.priority || 0,
        zone: (each.locality || '').replace(/^r[/]/, ''),
      })),
    };
  }
  // A few calls at a time, until told to end.
  async keepCalling() {
    const client = this.sluice.client();
    const asBytes = bytes => bytes;
    const one = async () => {
      while (this.load.going) {
        await new Promise(resolve => client.makeUnaryRequest('/sluice.test.v1.Name/Get', asBytes, asBytes,
          Buffer.alloc(0), { deadline: Date.now() + 30000 }, error => {
            ++this.load.calls;
            if (error) {
              ++this.load.failed;
              this.load.errors.add(error.message);
            }
            setTimeout(resolve, 5);
          }));
      }
    };
    await Promise.all([one(), one(), one(), one()]);
    client.close();
  }
}

// Lists that no client may take.
function badList(dice) {
  const endpoints = [{ address: '127.1.0.1', port: 1, weight: 1 }];
  switch (dice.below(4)) {
    case 0:
      return { what: 'a priority left out', resource: assignment(LIST, [
        { zone: 'z0-0', priority: 0, weight: 1, endpoints }, { zone: 'z2-0', priority: 2, weight: 1, endpoints: [
          { address: '127.1.0.2', port: 1, weight: 1 }] }]) };
    case 1:
      return { what: 'no address', resource: assignment(LIST, [
        { zone: 'z0-0', priority: 0, weight: 1, endpoints: [{ address: 'not-an-address', port: 1, weight: 1 }] }]) };
    case 2:
      return { what: 'weights beyond 32 bits', resource: assignment(LIST, [
        { zone: 'z0-0', priority: 0, weight: 4294967295, endpoints },
        { zone: 'z0-1', priority: 0, weight: 4294967295, endpoints: [{ address: '127.1.0.2', port: 1, weight: 1 }] }]) };
    default:
      return { what: 'bytes that are no list', resource: Buffer.from('ffffffff', 'hex') };
  }
}

async function main() {
  const port = await startBackends(HUGE);
  const ads = new AdsServer();
  await ads.start();
  ads.set('lds', CLUSTER, listener(CLUSTER));
  ads.set('rds', CLUSTER, routes(CLUSTER));
  ads.set('cds', CLUSTER, cluster(CLUSTER, null, LIST));
  const fleet = new RandomFleet(Number(seed), port, HUGE);
  const dice = fleet.dice;
  let version = ads.set('eds', LIST, assignment(LIST, fleet.localities));
  let members = membersOf(fleet.localities);
  let last = members;  // that was not empty

  const all = [];
  if (has('grpc-cpp')) {
    all.push(new Peer('grpc-cpp', () => new Talker(path.join(bin, 'xds_grpc_client'), [],
      { GRPC_XDS_BOOTSTRAP_CONFIG: bootstrap(ads.port, 'grpc-cpp') })));
  }
  if (has('grpc-js')) {
    all.push(new Peer('grpc-js', () => new Talker(process.execPath, [path.join(__dirname, 'grpc_js_client.js')],
      { GRPC_XDS_BOOTSTRAP_CONFIG: bootstrap(ads.port, 'grpc-js') })));
  }
  let sluice = null;
  let load = null;
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'sluice-xds-'));
  if (has('sluice')) {
    const daemon = new Sluice(bin, directory, { GRPC_XDS_BOOTSTRAP_CONFIG: bootstrap(ads.port, 'sluice') });
    await daemon.start('clusters:\n  - name: fleet\n    policy: round_robin\n    discovery: {xds: {resource: users}, ' +
      'moved_max: 1, empty_after: 1h}\nroutes: [{cluster: fleet}]\n');
    sluice = new SluicePeer(daemon);
  }
  const ids = [...all.map(peer => peer.id), ...(sluice === null ? [] : ['sluice'])];
  const counts = { updates: 0, refused: 0, restarts: 0, empty: 0, one: 0, large: 0, huge: 0, called: 0, replaced: 0 };

  // The answers of all to that version. A grpc-js that has lost its server and does not come back is replaced.
  const answered = async (which, bound) => {
    const js = all.find(peer => peer.id === 'grpc-js');
    if (js === undefined) return ads.answered('eds', which, ids, bound);
    const others = ads.answered('eds', which, ids.filter(id => id !== js.id), bound);
    others.catch(() => {});  // told below
    for (let left = bound; left > 0; left -= LOST_MS) {
      try {
        await ads.answered('eds', which, [js.id], Math.min(left, LOST_MS));
        break;
      } catch (error) {
        if (left <= LOST_MS) throw error;
        if (ads.serves(js.id)) continue;
        ++counts.replaced;
        await js.replace();
      }
    }
    await others;
    return ads.answered('eds', which, ids, 0);
  };
  let huge = false;  // the list before was: clients may be busy with it yet
  // All have this list now.
  const settled = async () => {
    const text = textOf(members);
    const bound = members.length > LARGE || huge ? HUGE_SETTLES_MS : SETTLES_MS;
    huge = members.length > LARGE;
    const answers = await answered(version, bound);
    for (const id of ids) {
      if (answers[id] !== '') throw new Error(`${id} refuses version ${version}: ${answers[id]}`);
    }
    for (const peer of all) {
      await until(`${peer.id} has version ${version}`, bound, () => peer.list(), state => state.text === text);
    }
    if (sluice !== null) {
      const wanted = members.length === 0 ? last : members;  // Sluice keeps the last one
      await until('sluice has the list', bound, () => sluice.list(),
        state => sameButForScale(state.members, wanted));
    }
    if (members.length === 0 || members.length > CALLED_MAX) return;
    const names = members.filter(each => each.priority === 0).map(each => each.name);
    for (const peer of all) {
      await peer.reaches(names, `xds:///${CLUSTER}`);
    }
    ++counts.called;
  };

  for (const peer of all) await peer.begin();
  await settled();
  if (sluice !== null) load = sluice.keepCalling();
  const begun = Date.now();
  for (let i = 0; i < Number(updates); ++i) {
    const roll = dice.below(1000);
    let what = 'change';
    const start = Date.now();
    try {
      if (roll < 80) {
        const bad = badList(dice);
        what = bad.what;
        const refused = ads.set('eds', LIST, bad.resource);
        const answers = await answered(refused, SETTLES_MS);
        for (const id of ids) {
          if (answers[id] === '') throw new Error(`${id} has taken a list with ${bad.what}`);
        }
        if (sluice !== null) {
          const kept = await sluice.list();
          if (!sameButForScale(kept.members, members.length === 0 ? last : members))
            throw new Error('sluice has not kept its list');
        }
        ++counts.refused;
        // grpc-js takes the list that it has for one that is refused still.
        const before = JSON.stringify(fleet.localities);
        while (JSON.stringify(fleet.localities) === before) fleet.change();
      } else if (roll < 120) {
        what = 'restart';
        // After a port that refuses, grpc-js may wait for two minutes: that is tried, but not often.
        ads.stop(dice.chance(0.1));
        fleet.change();
        ++counts.restarts;
      } else if (roll < 160) {
        what = 'empty';
        fleet.empty();
        ++counts.empty;
      } else if (roll < 200) {
        what = 'one';
        fleet.replace(1);
        ++counts.one;
      } else if (roll < 220) {
        what = 'large';
        fleet.replace(LARGE);
        ++counts.large;
      } else if (roll < 224) {
        what = 'huge';
        fleet.replace(HUGE);
        ++counts.huge;
      } else if (roll < 400) {
        what = 'replace';
        fleet.replace(1 + dice.below(50));
      } else {
        fleet.change();
      }
      version = ads.set('eds', LIST, assignment(LIST, fleet.localities));
      members = membersOf(fleet.localities);
      if (what === 'restart') await ads.start();
      await settled();
      if (members.length > 0) last = members;
    } catch (error) {
      throw new Error(`update ${i} (${what}, seed ${seed}): ${error.stack}`);
    }
    ++counts.updates;
    if (Date.now() - start > SLOW_MS)
      console.log(`update ${i} (${what}) took ${Math.round((Date.now() - start) / 1000)} s`);
    if (counts.updates % 50 === 0) {
      console.log(`${counts.updates} updates in ${Math.round((Date.now() - begun) / 1000)} s; ` +
        `calls through sluice: ${sluice === null ? 0 : sluice.load.calls}`);
    }
  }
  if (sluice !== null) {
    sluice.load.going = false;
    await within(60000, 'the last calls end', load);
    console.log(`calls through sluice: ${sluice.load.calls}, failed: ${sluice.load.failed}`);
    if (sluice.load.failed > 0 || sluice.load.calls === 0) throw new Error([...sluice.load.errors].join('\n'));
  }
  fs.rmSync(directory, { recursive: true });
  console.log(`seed ${seed}: ${ids.join(', ')} had the same list after each of ${counts.updates} updates: ` +
    JSON.stringify(counts));
  if (counts.updates !== Number(updates)) throw new Error('not all updates were made');
}

main().then(() => {
  endAll();
  process.exit(0);
}, error => {
  console.error(error);
  endAll();
  process.exit(1);
});
