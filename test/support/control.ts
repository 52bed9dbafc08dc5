/**
 * The control API in a test: real SQLite in memory, a clock that the test moves, an engine of data.
 */
import { newKeyBody } from '../../control/auth/app-key.ts'
import { consoleGrantor, issueKey } from '../../control/auth/issue-key.ts'
import { onlyInstance } from './only-instance.ts'
import { createHash } from 'node:crypto'
import type { OpenedAccess } from '../../control/access.ts'
import { hashPassword } from '../../control/auth/passwords.ts'
import { settingsInForce } from '../../engine/commands/settings-in-force.ts'
import { Ocs } from '../../engine/charging/ocs.ts'
import { expectDocumented } from './documented.ts'
import { type ServedApp, served } from './in-memory-http.ts'
import { journalOf } from './journals.ts'
import { openReports } from '../../control/reports/reports.ts'
import { openRateImports } from '../../control/resources/rate-imports.ts'
import type { ChangeDuties } from '../../control/changes/change-duties.ts'
import type { EventHub } from '../../control/observe/events/event-hub.ts'
import type { CarrierWatch } from '../../control/observe/causes/carrier-watch.ts'
import type { Payments } from '../../control/money/payments.ts'
import type { FindingWatch } from '../../control/observe/causes/finding-watch.ts'
import type { Proposals } from '../../control/agents/proposals/proposals.ts'
import type { Telemetry } from '../../control/observe/telemetry/telemetry.ts'
import type { McpSubscriptions } from '../../control/agents/mcp/subscriptions.ts'
import type { EventsPort } from '../../schema/contracts/engine.ts'
import type { ControlDeps } from '../../control/app.ts'
import { nowhere, type OwnNetwork } from '../../schema/rules/gateways.ts'
import { createControl } from '../../control/server.ts'
import { Alerts } from '../../control/alerts/alerts.ts'
import { Webhooks } from '../../control/webhooks/webhooks.ts'
import { execute, insert } from '../../schema/sql/query.ts'
import { NumberDirectory } from '../../engine/numbers/number-directory.ts'
import { numberReader } from '../../engine/numbers/number-store.ts'
import type { ChangedNumbers } from '../../schema/contracts/changed-rows.ts'
import { type TestEngine, testEngine } from './test-engine.ts'
import { isOnPostgres } from './on-sqlite.ts'
import { onlyProcess, realTimers } from './only-process.ts'
import { openTestStore, type TestStore } from './test-store.ts'

/** The parts of an answer that a test looks at. */
export interface Answer {
  readonly status: number
  readonly headers: Headers
  /** The parsed body; undefined when it is not JSON. */
  readonly body: unknown
  readonly text: string
  /** `data` of the envelope, in the shape that the test goes on with. */
  data<T>(): T
  /** `code` of an error envelope. */
  readonly code: string | undefined
}

type Role = 'admin' | 'operator' | 'auditor'

export interface TestControl {
  readonly app: ServedApp
  readonly edge: ServedApp
  readonly access: OpenedAccess
  readonly telemetry: Telemetry
  readonly hub: EventHub
  readonly changes: ChangeDuties
  readonly subscriptions: McpSubscriptions
  readonly proposals: Proposals
  readonly findings: FindingWatch
  readonly carriers: CarrierWatch
  /** Undefined: another system charges. */
  readonly payments: Payments | undefined
  readonly store: TestStore
  readonly engine: TestEngine
  readonly ocs: Ocs
  readonly deps: ControlDeps
  /** Everything that was logged. */
  readonly logged: { level: string; message: string; fields: unknown }[]
  /** Milliseconds UTC; moved by `tick`. */
  now(): number
  tick(ms: number): void
  /** Sets the machine's clock; no time passes. */
  jump(ms: number): void
  /** The token of a key that may do everything, but for what the body says otherwise. */
  key(body?: Readonly<Record<string, unknown>>): Promise<string>
  /** A member of the staff with the password `correct horse`. */
  user(username: string, role: Role, tenantId?: number): Promise<void>
  tenant(slug: string, domains?: readonly string[]): Promise<number>
  request(path: string, options?: RequestOptions): Promise<Answer>
  /** Stores the calls that have ended; those on a server a moment later. */
  flushCalls(): void
  /** Closes the database; the files of one can then be read. */
  close(): Promise<void>
}

export interface RequestOptions {
  readonly method?: string
  readonly token?: string
  readonly headers?: Readonly<Record<string, string>>
  /** An object is sent as JSON, a text as it stands (as `application/json`). */
  readonly body?: unknown
  /** The peer's address. */
  readonly from?: string
  readonly app?: ServedApp
}

/** 2026-01-01T00:00:00Z: a whole minute, so that expected times are easy to read. */
export const startOfTime = Date.UTC(2026, 0, 1)

/** The secret that the payment provider signs with. */
export const paymentWebhookSecret = 'whsec_test_secret'

export interface ControlOptions {
  /** The path of an SQLite file. */
  readonly path?: string
  readonly events?: EventsPort
  readonly trustedProxies?: readonly string[]
  readonly hasMediaRelay?: boolean
  readonly recordingsPath?: string | undefined
  readonly publicUrl?: string
  readonly allowsPrivateTargets?: boolean
  /** Absent: the installation names none. */
  readonly exitCodes?: readonly string[]
  readonly ownPlaces?: OwnNetwork
}

export async function openControl({
  path,
  events,
  trustedProxies = [],
  hasMediaRelay = false,
  recordingsPath,
  publicUrl,
  allowsPrivateTargets = false,
  exitCodes,
  ownPlaces = nowhere,
}: ControlOptions = {}): Promise<TestControl> {
  let steady = startOfTime
  let offsetMs = 0
  const steadyNow = (): number => steady
  const wallNow = (): number => steady + offsetMs
  const store = await openTestStore(steady, path)
  const logged: TestControl['logged'] = []
  const engine = testEngine(events)
  const ownedNumbers = new NumberDirectory(numberReader(store))
  Object.assign(engine, {
    ownedNumbers,
    reloadNumbers: (changed?: ChangedNumbers) => ownedNumbers.reload(changed),
  })
  const alerts = new Alerts({
    store,
    now: wallNow,
    steadyNow,
    random: () => 0,
    randomBytes: seededBytes('alerts'),
    schedule: () => () => undefined,
    log: () => undefined,
    sender: { send: async () => ({ kind: 'sent' }), close: () => undefined },
    instance: { name: 'a' },
    disks: () => Promise.resolve([]),
    instances: () => [],
  })
  const webhooks = new Webhooks({
    beside: alerts.sink,
    store,
    now: wallNow,
    steadyNow,
    random: () => 0,
    randomBytes: seededBytes('webhooks'),
    schedule: () => () => undefined,
    log: () => undefined,
    resolve: () => Promise.resolve([]),
    allowPrivate: false,
    instance: { name: 'a' },
  })
  const timers = realTimers()
  const ocs = await Ocs.open({
    store,
    now: steadyNow,
    wallNow,
    ...(isOnPostgres && { members: onlyProcess() }),
    schedule: isOnPostgres ? timers.schedule : () => () => undefined,
    every: () => () => undefined,
    journal: journalOf(store, () => () => undefined),
    events: webhooks.sink,
    unknownCaller: 'deny',
    exitCodes,
    log: () => undefined,
  })
  const deps: ControlDeps = {
    store,
    engine,
    webhooks,
    alerts,
    ocs,
    instances: onlyInstance(steadyNow),
    reports: openReports({ store, now: steadyNow, log: () => undefined }),
    rateImports: openRateImports({
      store,
      schedule: () => () => undefined,
      log: () => undefined,
    }),
    console: undefined,
    inForce: { settings: settingsInForce({}, []), notes: [] },
    now: wallNow,
    steadyNow,
    schedule: () => () => undefined,
    randomBytes: seededBytes('control'),
    log: (level, message, fields) => logged.push({ level, message, fields }),
    version: '0.0.0-test',
    loopDelay: { count: 0, percentiles: new Map(), reset: () => undefined },
    settings: {
      jwtSecret: undefined,
      paymentWebhookSecret,
      recordingsPath,
      publicUrl,
      allowsPrivateTargets,
      mcpAllowedHosts: [],
      trustedProxies,
      reservedNetworks: ['127.0.0.0/8'],
      ownPlaces,
      hasMediaRelay,
    },
  }
  const { access, telemetry, hub, changes, subscriptions, proposals, watches, ...made } =
    createControl(deps, { connectionsPerAddress: 4_096 })
  const app = served(made.api.app, made.api.server)
  let keys = 0

  return {
    app,
    access,
    telemetry,
    hub,
    changes,
    subscriptions,
    proposals,
    ...watches,
    store,
    engine,
    ocs,
    deps,
    logged,
    edge: served(made.edge.app, made.edge.server),
    now: wallNow,
    tick: (ms) => (steady += ms),
    jump: (ms) => (offsetMs += ms),
    async key(body = {}) {
      const own = 'tenant_slug' in body ? { tenant_scope: 'tenant' } : {}
      const usual = { name: `key ${(keys += 1)}`, scopes: ['*'], ...own }
      const parsed = newKeyBody.parse({ ...usual, ...body })
      const { token } = await issueKey({ ...deps, keys: access.keys }, parsed, consoleGrantor)
      return token
    },
    async user(username, role, tenantId) {
      const row = {
        username,
        role,
        password_hash: await (correctHorse ??= hashPassword('correct horse')),
        tenant_id: tenantId ?? null,
        created_at: steady,
        updated_at: steady,
      }
      if ((await access.users.insert(row)) === undefined) throw new Error(`${username} is taken`)
    },
    async tenant(slug, domains = []) {
      const row = { slug, name: slug, created_at: steady }
      const id = await insert(store, store.db.insertInto('tenant').values(row).returning('id'))
      for (const domain of domains)
        await execute(store, store.db.insertInto('tenant_domain').values({ domain, tenant_id: id }))
      return id
    },
    request: (path, options = {}) => send(app, path, options),
    flushCalls() {
      if (isOnPostgres) timers.hurry()
      else void ocs.stop()
    },
    close() {
      timers.end()
      return store.close()
    },
  }
}

/** The API with other dependencies, as a restart would make it. */
export function apiWith(deps: ControlDeps): ServedApp {
  const { app, server } = createControl(deps).api
  return served(app, server)
}

/** Hashed once: each hash takes 10 ms of a core. */
let correctHorse: Promise<string> | undefined

/** Every answer is held against the OpenAPI document, that of `api`. */
async function send(api: ServedApp, path: string, options: RequestOptions): Promise<Answer> {
  const { body, token, from, app = api } = options
  const method = options.method ?? (body === undefined ? 'GET' : 'POST')
  const headers = new Headers(options.headers)
  if (token !== undefined) headers.set('authorization', `Bearer ${token}`)
  // Without it, events are a stream that does not end.
  if (!headers.has('accept')) headers.set('accept', 'application/json')
  if (body !== undefined && !headers.has('content-type'))
    headers.set('content-type', 'application/json')
  const response = await app.request(
    path,
    {
      method,
      headers,
      ...(body !== undefined && { body: sent(body) }),
    },
    from,
  )
  const text = await response.text()
  const isJson = response.headers.get('content-type')?.startsWith('application/json') ?? false
  const parsed: unknown = text === '' || !isJson ? undefined : JSON.parse(text)
  const mediaType = response.headers.get('content-type')?.split(';', 1)[0] ?? ''
  expectDocumented(api, path, { method, status: response.status, mediaType, body: parsed })
  const envelope = Object(parsed) as { data?: unknown; code?: string }
  return {
    status: response.status,
    headers: response.headers,
    body: parsed,
    text,
    data: <T>() => envelope.data as T,
    code: envelope.code,
  }
}

/** Random-looking bytes that are the same in every run. */
function seededBytes(seed: string): (size: number) => Buffer {
  let count = 0
  return (size) => {
    const blocks: Buffer[] = []
    for (let length = 0; length < size; length += 64)
      blocks.push(
        createHash('sha512')
          .update(`${seed} ${(count += 1)}`)
          .digest(),
      )
    return Buffer.concat(blocks).subarray(0, size)
  }
}

/** Texts and bytes go as they are, anything else as JSON. */
const sent = (body: unknown): string | Uint8Array<ArrayBuffer> => {
  if (typeof body === 'string') return body
  return body instanceof Uint8Array ? new Uint8Array(body) : JSON.stringify(body)
}
