/**
 * The API as the bench drives it, in a process of its own: prints its port and keys as one line of
 * JSON, and answers questions about itself.
 */
import { newKeyBody } from '../../../control/auth/app-key.ts'
import { nowhere } from '../../../schema/rules/gateways.ts'
import { randomBytes } from 'node:crypto'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { consoleGrantor, issueKey } from '../../../control/auth/issue-key.ts'
import { KeyStore } from '../../../control/auth/key-store.ts'
import type { ControlDeps } from '../../../control/app.ts'
import { openReports } from '../../../control/reports/reports.ts'
import { startControl } from '../../../control/server.ts'
import { Webhooks } from '../../../control/webhooks/webhooks.ts'
import { migrate } from '../../../schema/migrate.ts'
import { openDatabase } from '../../../schema/open.ts'
import { onlyNode } from '../only-node.ts'
import { testEngine } from '../test-engine.ts'
import { answerQuestions } from './questions.ts'

const KEYS = 64

const store = openDatabase(process.argv[2] ?? ':memory:')
migrate(store.sqlite, Date.now())
const log: ControlDeps['log'] = (level, message, fields) =>
  process.stderr.write(`${level} ${message} ${JSON.stringify(fields)}\n`)
const webhooks = new Webhooks({
  store,
  now: Date.now,
  steadyNow: Date.now,
  random: Math.random,
  randomBytes,
  log,
  allowPrivate: false,
  node: { name: 'a' },
  schedule: () => () => undefined,
  resolve: () => Promise.resolve([]),
})
const deps: ControlDeps = {
  store,
  webhooks,
  reports: openReports({ store, now: Date.now, log }),
  engine: testEngine(),
  nodes: onlyNode(Date.now),
  ocs: undefined,
  console: undefined,
  inForce: undefined,
  schedule: () => () => undefined,
  now: Date.now,
  steadyNow: Date.now,
  randomBytes,
  log,
  version: 'bench',
  loopDelay: monitorEventLoopDelay(),
  settings: {
    jwtSecret: undefined,
    recordingsPath: undefined,
    paymentWebhookSecret: undefined,
    mcpAllowedHosts: [],
    trustedProxies: [],
    reservedNetworks: [],
    ownPlaces: nowhere,
    hasMediaRelay: false,
  },
}
const mint = { ...deps, keys: new KeyStore(store) }
const tokens: string[] = []
for (let index = 0; index < KEYS; index += 1) {
  // No bench request shall meet the limit; its window is kept as exactly as any other.
  const body = newKeyBody.parse({ name: `bench ${index}`, rate_limit_rpm: 100_000 })
  tokens.push((await issueKey(mint, body, consoleGrantor)).token)
}

const anyPort = { host: '127.0.0.1', port: 0 }
const server = await startControl(deps, {
  api: anyPort,
  edge: anyPort,
  every: (intervalMs, work) => {
    const timer = setInterval(work, intervalMs)
    return () => clearInterval(timer)
  },
})
process.stdout.write(`${JSON.stringify({ port: server.api.port, tokens })}\n`)

answerQuestions(() => void server.stop())
