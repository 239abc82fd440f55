// A daemon under test and its command line.
'use strict';
const { execFile, spawn } = require('child_process');
const fs = require('fs');
const grpc = require('@grpc/grpc-js');
const path = require('path');
const { keep, within } = require('./fleet');

class Sluice {
  // bin: where the programs are; directory: for its files. env: more of the environment.
  constructor(bin, directory, env = {}) {
    this.bin = bin;
    this.directory = directory;
    this.env = { ...process.env, ...env };
    this.admin = `unix:${path.join(directory, 'admin.sock')}`;
    this.listener = `unix:${path.join(directory, 'calls.sock')}`;
    this.log = path.join(directory, 'sluiced.log');
  }
  // config: YAML without listeners, admin and log. Resolves when it takes calls.
  async start(config) {
    const file = path.join(this.directory, 'sluice.yaml');
    fs.writeFileSync(file, `listeners: [{address: "${this.listener}"}]\nadmin: {grpc: "${this.admin}"}\n${config}`);
    const log = fs.openSync(this.log, 'a');
    this.child = keep(spawn(path.join(this.bin, 'sluiced'), ['-c', file],
      { stdio: ['ignore', log, log], env: this.env }));
    fs.closeSync(log);
    const ended = new Promise((resolve, reject) => this.child.once('exit', code => reject(
      new Error(`sluiced ended with ${code}: ${fs.readFileSync(this.log, 'utf8').slice(-2000)}`))));
    ended.catch(() => {});
    const client = this.client();
    await Promise.race([ended, within(30000, 'sluiced listens', new Promise((resolve, reject) => client.waitForReady(
      Date.now() + 30000, error => (error ? reject(error) : resolve()))))]);
    client.close();
  }
  client(options = {}) {
    return new grpc.Client(this.listener, grpc.credentials.createInsecure(),
      { 'grpc.default_authority': 'sluice.test', 'grpc.use_local_subchannel_pool': 1, ...options });
  }
  ctl(...args) {
    return new Promise((resolve, reject) => execFile(path.join(this.bin, 'sluicectl'),
      ['--address', this.admin, ...args], { maxBuffer: 64 << 20, timeout: 60000 },
      (error, stdout, stderr) => (error ? reject(new Error(`sluicectl ${args}: ${stderr}`)) : resolve(stdout))));
  }
}

module.exports = { Sluice };
