// A list of endpoints that changes at random, by a seed: what a control plane might send in a bad week.
'use strict';
const { addressOf } = require('./fleet');

class Dice {
  constructor(seed) {
    this.state = BigInt(seed) & 0xffffffffffffffffn;
  }
  // SplitMix64.
  next() {
    this.state = (this.state + 0x9e3779b97f4a7c15n) & 0xffffffffffffffffn;
    let z = this.state;
    z = ((z ^ (z >> 30n)) * 0xbf58476d1ce4e5b9n) & 0xffffffffffffffffn;
    z = ((z ^ (z >> 27n)) * 0x94d049bb133111ebn) & 0xffffffffffffffffn;
    return Number((z ^ (z >> 31n)) >> 12n);
  }
  below(n) { return this.next() % n; }
  chance(share) { return this.next() / 2 ** 52 < share; }
  pick(list) { return list[this.below(list.length)]; }
}

const SMALL_POOL = 60;  // of the backends, small lists have some of the first ones
const HEALTH = ['UNKNOWN', 'HEALTHY', 'UNKNOWN', 'HEALTHY', 'UNHEALTHY', 'DRAINING'];

class RandomFleet {
  constructor(seed, port, pool) {
    this.dice = new Dice(seed);
    this.port = port;
    this.pool = pool;
    this.localities = [];
    this.replace(5);
  }

  endpoint(i, healthy) {
    return {
      address: addressOf(i), port: this.port, weight: 1 + this.dice.below(9),
      health: healthy ? 'HEALTHY' : this.dice.pick(HEALTH),
    };
  }
  // A list of its own with `count` endpoints. The first of each locality is well.
  replace(count) {
    const from = Math.max(count, Math.min(SMALL_POOL, this.pool));
    const order = Array.from({ length: from }, (_, i) => i);
    for (let i = 0; i < count; ++i) {
      const k = i + this.dice.below(from - i);
      [order[i], order[k]] = [order[k], order[i]];
    }
    const priorities = count >= 6 && this.dice.chance(0.3) ? 2 + this.dice.below(2) : 1;
    this.localities = [];
    for (let priority = 0; priority < priorities; ++priority) {
      const zones = count >= 6 && this.dice.chance(0.3) ? 2 : 1;
      for (let zone = 0; zone < zones; ++zone) {
        this.localities.push({ zone: `z${priority}-${zone}`, priority, weight: 1 + this.dice.below(3), endpoints: [] });
      }
    }
    for (let i = 0; i < count; ++i) {
      const locality = this.localities[i % this.localities.length];
      locality.endpoints.push(this.endpoint(order[i], locality.endpoints.length === 0));
    }
    this.localities = this.localities.filter(locality => locality.endpoints.length > 0);
  }
  // Some endpoints come, go, or have another weight or health.
  change() {
    const used = new Set(this.localities.flatMap(each => each.endpoints.map(endpoint => endpoint.address)));
    if (used.size === 0 || used.size > SMALL_POOL) return this.replace(1 + this.dice.below(50));
    for (let n = 1 + this.dice.below(4); n > 0; --n) {
      const locality = this.dice.pick(this.localities);
      const at = this.dice.below(locality.endpoints.length);
      const i = this.dice.below(Math.min(SMALL_POOL, this.pool));
      switch (this.dice.below(4)) {
        case 0:
          if (!used.has(addressOf(i))) locality.endpoints.push(this.endpoint(i, false));
          used.add(addressOf(i));
          break;
        case 1:
          if (at > 0) locality.endpoints.splice(at, 1);
          break;
        case 2:
          locality.endpoints[at].weight = 1 + this.dice.below(9);
          break;
        default:
          if (at > 0) locality.endpoints[at].health = this.dice.pick(HEALTH);
      }
    }
  }
  empty() {
    this.localities = [];
  }
}

// The endpoints that may get calls: those in good health. [{name, weight, priority, zone}]; a weight is the product with its
// locality's (gRFC A42).
function membersOf(localities) {
  return localities.flatMap(locality => locality.endpoints
    .filter(endpoint => ['UNKNOWN', 'HEALTHY'].includes(endpoint.health))
    .map(endpoint => ({
      name: `${endpoint.address}:${endpoint.port}`, weight: endpoint.weight * locality.weight,
      priority: locality.priority, zone: locality.zone,
    })));
}
// The same of a decoded ClusterLoadAssignment.
function membersOfAssignment(message) {
  return membersOf(message.endpoints.map(locality => ({
    zone: locality.locality.zone,
    priority: locality.priority,
    weight: locality.load_balancing_weight.value,
    endpoints: locality.lb_endpoints.map(each => ({
      address: each.endpoint.address.socket_address.address,
      port: each.endpoint.address.socket_address.port_value,
      weight: each.load_balancing_weight.value,
      health: each.health_status,
    })),
  })));
}
// One text for one set, whatever its order.
function textOf(members) {
  return members.map(each => `${each.name} weight ${each.weight} priority ${each.priority} in ${each.zone}`).sort().join('\n');
}

// Whether two sets are the same, but for a factor that all weights of a priority have in common.
function sameButForScale(some, others) {
  const shares = members => {
    const sums = {};
    for (const each of members) sums[each.priority] = (sums[each.priority] || 0) + each.weight;
    return members.map(each => ({ ...each, weight: each.weight / sums[each.priority] }))
      .sort((a, b) => (a.name < b.name ? -1 : 1));
  };
  const a = shares(some);
  const b = shares(others);
  return a.length === b.length && a.every((each, i) => each.name === b[i].name && each.zone === b[i].zone &&
    each.priority === b[i].priority && Math.abs(each.weight / b[i].weight - 1) < 1e-3);
}

module.exports = { Dice, RandomFleet, membersOf, membersOfAssignment, sameButForScale, textOf };
