/** Joins the API and the customer edge to their HTTP servers, and binds these to their ports. */
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createApi, createEdge, type ControlApp, type ControlDeps } from './app.ts'
import { kinds } from './resources/kinds.ts'
import { openAccess } from './access.ts'
import { CHANGES_POLL_MS } from './changes/undo.ts'
import { ChangeDuties } from './changes/change-duties.ts'
import { earliest, type Every } from '../schema/clock.ts'
import { canonicalAddress } from '../schema/net/ip-address.ts'
import { USAGE_FLUSH_INTERVAL_MS } from './auth/key-usage.ts'
import { CARRIERS_TICK_MS, CarrierWatch } from './observe/causes/carrier-watch.ts'
import { PAYMENTS_TICK_MS, Payments } from './money/payments.ts'
import { FINDINGS_TICK_MS, FindingWatch } from './observe/causes/finding-watch.ts'
import { EventFeed } from './observe/events/event-feed.ts'
import { PeerEvents } from './observe/events/peer-events.ts'
import { EventHub, KEEP_ALIVE_MS } from './observe/events/event-hub.ts'
import {
  type ConnectionLimits,
  defaultLimits,
  httpServer,
  type OnRefused,
  type ServerCertificate,
  type Watch,
} from './http/http-server.ts'
import { ConnectionLimit } from './http/connection-limit.ts'
import { RERATING_TICK_MS, Reratings } from './resources/reratings/reratings.ts'
import { isUnstored } from '../schema/storage/storage.ts'
import { correlationIds } from './http/front.ts'
import { describeRefused } from './auth/rate-limit.ts'
import { Telemetry, TICK_MS } from './observe/telemetry/telemetry.ts'
import { POLL_MS, McpSubscriptions } from './agents/mcp/subscriptions.ts'
import { openTools } from './open-tools.ts'

export interface Address {
  readonly host: string
  readonly port: number
}

/** Where to listen. */
export interface ListenAddress extends Address {
  /** Undefined: plain HTTP. */
  readonly certificate?: ServerCertificate | undefined
  /** The service manager has bound it, and passes its socket. */
  readonly descriptor?: number | undefined
}

export interface ServerOptions {
  readonly api: ListenAddress
  readonly edge: ListenAddress
  readonly every: Every
  readonly limits?: Partial<ConnectionLimits>
}

/** How late a proposal may expire. */
const PROPOSALS_TICK_MS = 10_000
/** How long a stopping server waits for pending responses. */
const STOP_MS = 2_000

export interface ControlServer {
  readonly api: Address
  readonly edge: Address
  /** Accepts no further request, lets pending ones finish, and writes the key counters. */
  stop(): Promise<void>
}

/** The API with all its parts, bound to no port yet. */
export function createControl(
  deps: ControlDeps,
  options?: Partial<ConnectionLimits>,
  certificates: Partial<Record<'api' | 'edge', ServerCertificate | undefined>> = {},
) {
  const access = openAccess(deps)
  const telemetry = new Telemetry(deps)
  const { steadyNow, schedule, others } = deps
  const peers = others && new PeerEvents(others, steadyNow, schedule)
  const hub = new EventHub(deps.engine.events, steadyNow, deps.ocs, peers)
  const feed = new EventFeed(deps.engine.events, steadyNow, deps.ocs)
  const subscriptions = new McpSubscriptions(steadyNow)
  const limits = { ...defaultLimits, ...options }
  const refused: OnRefused = (status, address, set) => {
    telemetry.requests.unrouted.add(status)
    describeRefused(access.limits, canonicalAddress(address), deps, set)
  }
  const newId = correlationIds(deps.randomBytes)
  const unrouted: Watch['unrouted'] = {
    add(status, answer) {
      const set = (name: string, value: string) => answer.setEarly(name, value)
      refused(status, answer.req.socket.remoteAddress ?? '', set)
      set('Cache-Control', 'no-store')
    },
  }
  const serve = (app: ControlApp, certificate: ServerCertificate | undefined) => {
    const watch = {
      unrouted,
      refused,
      newId,
      perAddress: new ConnectionLimit(limits.connectionsPerAddress, deps.settings.trustedProxies),
      connectionRefused: () => void (telemetry.refused.connections += 1),
    }
    return { app, server: httpServer(app, limits, watch, certificate) }
  }
  const { ocs } = deps
  const reratings = ocs && new Reratings({ ...deps, ocs })
  const tools = openTools({ ...deps, reratings }, access, telemetry, access.audit)
  deps.webhooks.completeWith((endpoint, body) => access.links.complete(endpoint, body))
  const api = serve(
    createApi(deps, access, telemetry, { hub, feed, subscriptions, reratings, ...tools }),
    certificates.api,
  )
  const edge = serve(createEdge(deps, access, telemetry), certificates.edge)
  const { keys, tenants, audit } = access
  const now = () => earliest(deps)
  const changes = new ChangeDuties({
    ...deps,
    reratings,
    kinds,
    now,
    keys,
    tenants,
    audit,
    newCorrelationId: newId,
  })
  const { proposals } = tools
  const watches = {
    findings: new FindingWatch(deps),
    carriers: new CarrierWatch(deps),
    payments: ocs && new Payments({ ...deps, ocs }),
  }
  deps.alerts.watchCarriers(() => watches.carriers.seen())
  const made = { access, telemetry, hub, feed, subscriptions, changes, proposals, watches }
  return { ...made, reratings, api, edge }
}

export async function startControl(
  deps: ControlDeps,
  options: ServerOptions,
): Promise<ControlServer> {
  const {
    access,
    telemetry,
    hub,
    feed,
    subscriptions,
    changes,
    proposals,
    reratings,
    watches,
    ...made
  } = createControl(deps, options.limits, {
    api: options.api.certificate,
    edge: options.edge.certificate,
  })
  await access.prepare()
  // With several instances, another one may be at work.
  if (deps.others === undefined) await changes.begin()
  const api = await listen(made.api.server, options.api)
  const edge = await listen(made.edge.server, options.edge).catch(async (error: unknown) => {
    await close(api)
    throw error
  })
  const stopTelemetry = options.every(TICK_MS, () => telemetry.tick())
  hub.begin(options.every)
  feed.begin(options.every)
  const stopHub = [
    options.every(KEEP_ALIVE_MS, () => hub.keepAlive()),
    options.every(POLL_MS, () => void subscriptions.poll()),
  ]
  const tick = (): Promise<void> =>
    access.tick().catch((error: unknown) => {
      deps.log('warn', 'key counters could not be written', { error: String(error) })
    })
  const cancel = options.every(USAGE_FLUSH_INTERVAL_MS, () => void tick())
  const stopChanges = options.every(CHANGES_POLL_MS, () => void changes.poll())
  const expire = (): Promise<void> =>
    proposals.tick().catch((error: unknown) => {
      // Then the next time.
      if (!isUnstored(error)) deps.log('error', 'expired proposals could not be closed', { error })
    })
  const stopProposals = options.every(PROPOSALS_TICK_MS, () => void expire())
  const stopWatches = [
    options.every(FINDINGS_TICK_MS, () => void watches.findings.tick()),
    options.every(CARRIERS_TICK_MS, () => void watches.carriers.tick()),
    options.every(PAYMENTS_TICK_MS, () => void watches.payments?.tellWaiting()),
  ]
  reratings?.wake()
  const stopReratings = options.every(RERATING_TICK_MS, () => reratings?.wake())
  return {
    api: addressOf(api),
    edge: addressOf(edge),
    async stop() {
      cancel()
      stopChanges()
      stopTelemetry()
      stopProposals()
      stopReratings()
      for (const stop of stopWatches) stop()
      for (const stop of stopHub) stop()
      // The server cannot wait for streams: they do not end by themselves.
      hub.close()
      feed.close()
      subscriptions.close()
      deps.others?.client.close()
      await Promise.all([close(api), close(edge)])
      await Promise.all([deps.reports.stop(), deps.rateImports.stop(), reratings?.stop()])
      await access.close()
    },
  }
}

function listen(server: Server, { host, port, descriptor }: ListenAddress): Promise<Server> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(descriptor === undefined ? { host, port } : { fd: descriptor }, () => {
      server.off('error', reject)
      resolve(server)
    })
  })
}

async function close(server: Server): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()))
  server.closeIdleConnections()
  const patience = AbortSignal.timeout(STOP_MS)
  patience.addEventListener('abort', () => server.closeAllConnections())
  await closed
}

function addressOf(server: Server): Address {
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('not bound to a port')
  return hostAndPort(address)
}

const hostAndPort = ({ address, port }: AddressInfo): Address => ({ host: address, port })
