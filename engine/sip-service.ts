/** SIP for this process: by a server in it, or by drachtio-servers elsewhere. */
import type { Every, Schedule } from '../schema/clock.ts'
import type { Log } from '../schema/contracts/log.ts'
import { ALLOW } from './call/sip-headers.ts'
import { drachtioService } from './call/user-agent/drachtio/drachtio-service.ts'
import type { RequestScreen } from './call/user-agent/drachtio/drachtio-servers.ts'
import type { Config } from './config.ts'
import {
  createSipServer,
  type Machine,
  type SipServerOptions,
  type SipService,
  thisMachine,
} from './sip-server/index.ts'

/** The overload control measures so seldom without calls. */
const SELDOM_MS = 1_000

type DecidedOption =
  | 'admit'
  | 'sourceStatus'
  | 'isUrgent'
  | 'mayReach'
  | 'onRefusedInvite'
  | 'onRegisteredFlowClosed'
  | 'readToken'
  | 'admitInDialog'
  | 'mayFollow'

/** Decisions that the server leaves to parts of the engine, and events that it tells them. */
export type SipDecisions = {
  readonly [Option in DecidedOption]-?: NonNullable<SipServerOptions[Option]>
} & {
  /** Whether a drachtio-server may let in a request; ours asks before it decodes anything. */
  readonly admitRequest: RequestScreen
  /** The call to which a Call-ID belongs, for captured messages. */
  readonly correlationOf: (callId: string) => string | undefined
}

interface SipServiceDeps {
  readonly config: Config
  /** There are other instances: requests come with their tokens. */
  readonly hasPeers: boolean
  /** Milliseconds by the steady clock. */
  readonly now: () => number
  /** Milliseconds UTC. */
  readonly wallNow: () => number
  readonly schedule: Schedule
  /** Absent: what is measured once a second has a timer of its own. */
  readonly every?: Every | undefined
  readonly randomBytes: (size: number) => Buffer
  readonly newUuid: () => string
  readonly log: Log
}

/**
 * The only place that knows which of the two serves SIP. `decisions` is called from the start of
 * the server on.
 */
export function createSipService(deps: SipServiceDeps, decisions: () => SipDecisions): SipService {
  const { servers } = deps.config.drachtio
  if (servers === undefined) return embeddedService(deps, decisions)
  const { schedule, now, log, newUuid: newToken } = deps
  return drachtioService({
    servers,
    schedule,
    now,
    log,
    newToken,
    admit: (source, method, userAgent) => decisions().admitRequest(source, method, userAgent),
  })
}

function embeddedService(
  { config, hasPeers, wallNow, every, randomBytes, log }: SipServiceDeps,
  decisions: () => SipDecisions,
): SipService {
  const { listen, secret } = config.drachtio
  const { advertisedHost, tls, webSocketOrigins: origins, dnsServers } = config.sip
  const { sessionExpiresSeconds: sessionSeconds } = config
  const options: SipServerOptions = {
    listen: config.sip.listen,
    webSocket: { origins },
    secret,
    randomBytes,
    log,
    allow: ALLOW,
    connectionsPerAddress: config.sip.connectionsPerAddress,
    admit: (source, packet) => decisions().admit(source, packet),
    sourceStatus: (source) => decisions().sourceStatus(source),
    isUrgent: (uri) => decisions().isUrgent(uri),
    mayReach: (name, target, peer) => decisions().mayReach(name, target, peer),
    onRefusedInvite: (invite) => decisions().onRefusedInvite(invite),
    onRegisteredFlowClosed: (flow) => decisions().onRegisteredFlowClosed(flow),
    readToken: hasPeers ? (request) => decisions().readToken(request) : undefined,
    admitInDialog: (request, dialog) => decisions().admitInDialog(request, dialog),
    mayFollow: (way) => decisions().mayFollow(way),
    // The second of two targets of a name has its turn before the call moves to another
    // candidate.
    timers: { inviteSilenceMs: config.nodeTimeoutMs / 2 },
    // The settings do not allow less than the RFC's 90 s; a test does.
    ...(sessionSeconds > 0 ? { minSessionSeconds: Math.min(90, sessionSeconds) } : {}),
    ...(advertisedHost === undefined ? {} : { advertisedHost }),
    ...(dnsServers === undefined ? {} : { dnsServers }),
    ...(tls === undefined ? {} : { tls }),
    ...(listen === undefined ? {} : { admin: listen }),
    capture: config.hep && {
      ...config.hep,
      correlationOf: (callId) => decisions().correlationOf(callId),
      now: wallNow,
    },
  }
  return createSipServer(options, every && sharingWakeUps(every))
}

/** Measurements that are seldom wake the process together with all that it looks for. */
const sharingWakeUps = (every: Every): Machine => ({
  ...thisMachine,
  repeat: (work, everyMs) =>
    everyMs < SELDOM_MS ? thisMachine.repeat(work, everyMs) : every(everyMs, work),
})
