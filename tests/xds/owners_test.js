// ring: xds names the owner of each key that grpc-js-xds names: both call the same backends with the same keys, and
// each backend answers with its name.
//   owners_test.js BIN             compares the daemon in BIN with grpc-js-xds: once with its lists in its configuration,
//                                  once from the same control plane
//   owners_test.js --golden FILE   writes what grpc-js-xds says for the unit test of the ring
'use strict';
const fs = require('fs');
const grpc = require('@grpc/grpc-js');
const os = require('os');
const path = require('path');
const { AdsServer } = require('./lib/ads_server');
const { Talker, addressOf, bootstrap, endAll, startBackends, within } = require('./lib/fleet');
const { KEY_HEADER, assignment, cluster, listener, routes } = require('./lib/resources');
const { Sluice } = require('./lib/sluice');

const ENDPOINTS_MAX = 1000;
const LARGEST = 8388608;

// Whole numbers in [1, max]; by a fixed seed, so that each run has the same weights.
function weightsOf(count, max, seed) {
  let state = seed;
  return Array.from({ length: count }, () => {
    state = (Math.imul(state, 1103515245) + 12345) >>> 0;
    return 1 + ((state >>> 8) % max);
  });
}

// min, max: of the cluster's ring. cap: what the client limits both to, where it is not its default of 4096.
function cases(keys) {
  const out = [];
  for (const count of [3, 50, ENDPOINTS_MAX]) {
    const equal = new Array(count).fill(1);
    out.push({ weights: equal, min: 1024, max: 4096, keys });
    out.push({ weights: weightsOf(count, 100, count), min: 1024, max: 4096, keys });
    out.push({ weights: weightsOf(count, 100, count + 7), min: 1024, max: LARGEST, cap: LARGEST, keys });
    out.push({ weights: weightsOf(count, 5, count + 9), min: 77, max: 1333, keys });
  }
  return out;
}
function goldenCases() {
  return [
    { weights: [1, 1, 1], min: 1024, max: 4096, keys: 500 },
    { weights: [1, 2, 5], min: 10, max: 4096, keys: 500 },
    { weights: weightsOf(50, 100, 1), min: 1024, max: 4096, keys: 500 },
    { weights: weightsOf(50, 100, 2), min: 1024, max: LARGEST, cap: LARGEST, keys: 500 },
    { weights: new Array(1000).fill(1), min: 1024, max: 4096, keys: 500 },
    { weights: weightsOf(1000, 3, 3), min: 1024, max: 4096, keys: 500 },
    { weights: weightsOf(1000, 100, 4), min: 1024, max: LARGEST, cap: LARGEST, keys: 500 },
  ];
}

async function startAds(list, port) {
  const ads = new AdsServer();
  await ads.start();
  list.forEach((each, i) => {
    const name = `ring-${i}`;
    const endpoints = each.weights.map((weight, k) => ({ address: addressOf(k), port, weight }));
    ads.set('lds', name, listener(name));
    ads.set('rds', name, routes(name));
    ads.set('cds', name, cluster(name, { min: each.min, max: each.max }));
    ads.set('eds', name, assignment(name, [{ zone: 'here', priority: 0, weight: 1, endpoints }]));
  });
  return ads;
}

async function ownersOfGrpc(list, ads) {
  const client = new Talker(process.execPath, [path.join(__dirname, 'grpc_js_client.js')],
    { GRPC_XDS_BOOTSTRAP_CONFIG: bootstrap(ads.port, 'grpc-js') });
  const out = [];
  for (let i = 0; i < list.length; ++i) {
    const answer = await client.ask({ op: 'owners', target: `xds:///ring-${i}`, keys: list[i].keys, cap: list[i].cap },
      300000);
    if (answer.error) throw new Error(`grpc-js: ${answer.error}`);
    out.push(answer.owners);
  }
  return out;
}

// ads: where it has its lists from; null: from its configuration.
async function ownersOfSluice(list, port, bin, ads) {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'sluice-xds-'));
  const sluice = new Sluice(bin, directory,
    ads === null ? {} : { GRPC_XDS_BOOTSTRAP_CONFIG: bootstrap(ads.port, 'sluice') });
  const lines = ['clusters:'];
  list.forEach((each, i) => {
    // The ring is compared, not what is passed over while a loaded machine keeps an endpoint's answers waiting.
    lines.push(`  - name: ring-${i}`, '    policy: ring_hash', '    ring: xds', '    ejection: {enabled: false}', `    ring_size_min: ${each.min}`,
      `    ring_size_max: ${each.cap === undefined ? Math.min(each.max, 4096) : each.max}`);
    if (ads !== null) return lines.push(`    discovery: {xds: {resource: ring-${i}}}`);
    lines.push('    endpoints:');
    each.weights.forEach((weight, k) => lines.push(`      - {address: "${addressOf(k)}:${port}", weight: ${weight}}`));
    return undefined;
  });
  lines.push('routes:');
  list.forEach((each, i) => lines.push(
    `  - {cluster: ring-${i}, hash_by: {metadata: ${KEY_HEADER}}, metadata: [{name: x-case, exact: "${i}"}]}`));
  await sluice.start(lines.join('\n') + '\n');
  const has = async i => JSON.parse(await sluice.ctl('--json', 'endpoints', `ring-${i}`)).clusters[0].endpoints.length;
  await within(60000, 'sluice has all lists', (async () => {
    for (let i = 0; i < list.length; ++i) while (await has(i) !== list[i].weights.length);
  })());
  const client = sluice.client();
  const asBytes = bytes => bytes;
  const call = (i, key) => new Promise((resolve, reject) => {
    const metadata = new grpc.Metadata();
    metadata.set('x-case', String(i));
    metadata.set(KEY_HEADER, `key-${key}`);
    client.makeUnaryRequest('/sluice.test.v1.Name/Get', asBytes, asBytes, Buffer.alloc(0), metadata,
      { deadline: Date.now() + 30000 }, (error, response) => (error ? reject(error) : resolve(response.toString())));
  });
  const out = [];
  for (let i = 0; i < list.length; ++i) {
    const owners = new Array(list[i].keys);
    let next = 0;
    const one = async () => {
      for (let key = next++; key < list[i].keys; key = next++) owners[key] = await call(i, key);
    };
    await Promise.all(Array.from({ length: 64 }, one));
    out.push(owners);
  }
  client.close();
  fs.rmSync(directory, { recursive: true });
  return out;
}

async function golden(file) {
  const list = goldenCases();
  const port = await startBackends(ENDPOINTS_MAX);
  const owners = await ownersOfGrpc(list, await startAds(list, port));
  const place = new Map(Array.from({ length: ENDPOINTS_MAX }, (_, i) => [`${addressOf(i)}:${port}`, i]));
  const lines = ['# Owners that @grpc/grpc-js-xds named: written by tests/xds/golden.sh, read by xds_ring_test.cc.'];
  list.forEach((each, i) => {
    lines.push(`ring ${each.min} ${each.max} ${port}`, `weights ${each.weights.join(' ')}`,
      `owners ${owners[i].map(name => place.get(name)).join(' ')}`);
  });
  fs.writeFileSync(file, lines.join('\n') + '\n');
}

async function compare(bin) {
  const list = cases(Number(process.env.XDS_KEYS || 10000));
  const port = await startBackends(ENDPOINTS_MAX);
  const ads = await startAds(list, port);
  const theirs = await ownersOfGrpc(list, ads);
  const wrong = judge('configuration', list, theirs, await ownersOfSluice(list, port, bin, null)) +
    judge('xds', list, theirs, await ownersOfSluice(list, port, bin, ads));
  ads.stop();
  if (wrong !== 0) throw new Error(`${wrong} keys have another owner`);
}

// Prints what was compared; the number of keys with another owner.
function judge(source, list, theirs, ours) {
  let compared = 0;
  let equal = 0;
  list.forEach((each, i) => {
    const same = theirs[i].filter((name, key) => name === ours[i][key]).length;
    const used = new Set(theirs[i]).size;
    console.log(`${each.weights.length} endpoints (${used} own keys), weights ${Math.min(...each.weights)} to ` +
      `${Math.max(...each.weights)}, ring ${each.min} to ${each.max}${each.cap ? '' : ', client cap 4096'}: ` +
      `${same} of ${each.keys} keys have the same owner`);
    compared += each.keys;
    equal += same;
  });
  console.log(`owners, lists by ${source}: ${compared} keys compared, ${equal} equal`);
  if (compared === 0) throw new Error('nothing was compared');
  return compared - equal;
}

const [first, second] = process.argv.slice(2);
(first === '--golden' ? golden(second) : compare(first)).then(() => {
  endAll();
  process.exit(0);
}, error => {
  console.error(error);
  endAll();
  process.exit(1);
});
