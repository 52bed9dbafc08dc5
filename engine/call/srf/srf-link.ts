/**
 * One connection of drachtio-srf to one server. Each server gets a library of its own: with several
 * connections in one, CANCEL of an unanswered INVITE would go to the first of them.
 */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { ConnectionOptions } from 'node:tls'
import type { Log } from '../../../schema/contracts/log.ts'
import type { Schedule } from '../deadlines.ts'
import type { Agent, SipRequest, SocketWire, Srf, SrfConstructor } from './drachtio.ts'
import { attachInProcess, type OpenInProcess } from './in-process-wire.ts'
import { connectAgainByTls, watchServer } from './server-connection.ts'

export interface ServerAddress {
  readonly host: string
  readonly port: number
  readonly secret: string
  /** Undefined: without TLS. */
  readonly tls?: TlsTrust | undefined
}

export interface Servers {
  /** At least one. What we begin is spread over those that are there. */
  readonly servers: readonly ServerAddress[]
  readonly schedule: Schedule
  /** A value that cannot be guessed; absent: whether others take calls there is not checked. */
  readonly newToken?: () => string
}

/** Which authorities the server's certificate must be signed by. */
export interface TlsTrust {
  /** PEM file of one authority or several; undefined: those that Node.js knows. */
  readonly caFile: string | undefined
}

export type LinkTarget =
  | { readonly kind: 'in-process'; readonly open: OpenInProcess; readonly secret: string }
  | ({ readonly kind: 'tcp' } & Omit<Servers, 'servers'> & ServerAddress)

export type Connected =
  /** `hostPorts`: what the server listens on, such as `udp/192.0.2.1:5060`. */
  | { readonly kind: 'connected'; readonly hostPorts: readonly string[]; readonly version: string }
  | { readonly kind: 'refused'; readonly reason: string }
  /** Another application takes calls there: each would get a part of them. */
  | { readonly kind: 'shared'; readonly server: string }

/** For the operator. */
export function whyNot(connected: Exclude<Connected, { readonly kind: 'connected' }>): string {
  if (connected.kind === 'refused')
    return `the server of DRACHTIO_URL refuses us: ${connected.reason}`
  return (
    `another application takes calls at ${connected.server} of DRACHTIO_URL; ` +
    'each would get a part of them: give it a server of its own'
  )
}

export interface LinkDeps {
  readonly log: Log
  /** Sees what a server hands over, before it is handled. */
  readonly onPayload: (payload: string) => void
  /** The connection is gone, and everything on it. */
  readonly onLost: (link: SrfLink) => void
}

const KEEP_ALIVE_MS = 10_000

/** A server that is back is found within this time; the library's own delay would grow without limit. */
const MAX_RETRY_DELAY_MS = 5_000

const SrfLibrary = createRequire(import.meta.url)('drachtio-srf') as SrfConstructor

// The library writes every message as JSON for a debug line that is not printed: 25 µs of a call.
SrfLibrary.SipMessage.prototype.toJSON = () => undefined

export class SrfLink {
  readonly srf: Srf = new SrfLibrary()
  readonly #deps: LinkDeps
  readonly #pending = new Set<() => void>()
  /** Call-IDs of INVITEs that are just being answered: no longer pending, not yet dialogs. */
  readonly #answering = new Set<string>()
  #hostPorts: readonly string[] = []
  #isTollgate = false
  #isInProcess = false

  constructor(deps: LinkDeps) {
    this.#deps = deps
    this.srf.on('error', (error) =>
      deps.log('warn', 'drachtio server unreachable', { error: messageOf(error) }),
    )
    this.srf.on('close', () => this.#lost())
  }

  /** Over TCP the library keeps trying; `onConnected` is called each time that it succeeds. */
  connect(target: LinkTarget, onConnected: (connected: Connected) => void): void {
    this.srf.on('connect', (error, hostPorts, version) => {
      if (error) return onConnected({ kind: 'refused', reason: messageOf(error) })
      // Nagle's algorithm would hold messages back, and a server that lost its power would be missed
      // after hours: on a connection that was made again the library sets neither.
      for (const socket of this.agent?.mapServer.keys() ?? [])
        socket.setNoDelay(true).setKeepAlive(true, KEEP_ALIVE_MS)
      this.#isTollgate = version.includes('tollgate')
      this.#hostPorts = hostPorts.split(',')
      return onConnected({ kind: 'connected', hostPorts: this.#hostPorts, version })
    })
    this.#outliveFaults(target)
    this.#isInProcess = target.kind === 'in-process'
    if (target.kind === 'in-process') return attachInProcess(this.srf, target, this.#deps.onPayload)
    const { host, port, secret, schedule } = target
    const reconnect = { retryMaxDelay: MAX_RETRY_DELAY_MS }
    if (target.tls === undefined) return this.srf.connect({ host, port, secret, reconnect })
    const tls = tlsOptions(target.tls)
    if ('problem' in tls) return onConnected({ kind: 'refused', reason: tls.problem })
    this.srf.connect({ host, port, secret, reconnect, tls })
    const wire = this.#wire
    if (wire) connectAgainByTls(wire, { host, port }, tls, schedule)
  }

  /** Nothing is tried any more. */
  disconnect(): void {
    if ((this.agent?.mapServer.size ?? 0) > 0) return this.srf.disconnect()
    const wire = this.#wire
    if (wire) wire.closing = true
  }

  get #wire(): SocketWire | undefined {
    return this.agent?.wp as SocketWire | undefined
  }

  /** What handling a message throws ends only that message; a silent server is left. */
  #outliveFaults(target: LinkTarget): void {
    const { app } = this.srf
    const begin = app._init.bind(app)
    app._init = () => {
      const agent = begin()
      const handle = agent._onMsg.bind(agent)
      agent._onMsg = (socket, payload) => {
        if (target.kind === 'tcp') this.#deps.onPayload(payload)
        try {
          handle(socket, payload)
        } catch (error) {
          const fields = { error: messageOf(error) }
          this.#deps.log('error', 'a SIP message could not be handled', fields)
        }
      }
      if (target.kind === 'tcp') this.#watch(agent, target)
      return agent
    }
  }

  #watch(agent: Agent, { host, port, schedule }: Extract<LinkTarget, { kind: 'tcp' }>): void {
    const begin = agent._onConnect.bind(agent)
    agent._onConnect = (socket) => {
      begin(socket)
      const wire = this.#wire
      if (wire)
        watchServer(socket, wire, schedule, () =>
          this.#deps.log('warn', 'drachtio server is silent', { host, port }),
        )
    }
  }

  /** Without a connection the library throws an AssertionError; before the welcome nothing is answered. */
  get isConnected(): boolean {
    for (const { ready } of this.agent?.mapServer.values() ?? []) if (ready) return true
    return false
  }

  /** What the server listens on; empty before the first connection. */
  get hostPorts(): readonly string[] {
    return this.#hostPorts
  }

  /** Any other application gets what drachtio-server would give it, which is no 100. */
  get hearsTrying(): boolean {
    return this.#isTollgate && this.#isInProcess
  }

  /** It cannot be away: it is this process. */
  get isInProcess(): boolean {
    return this.#isInProcess
  }

  /** The server does all of RFC 4028 by itself. */
  get keepsSessionTimers(): boolean {
    return this.#isTollgate
  }

  get agent(): Agent | undefined {
    return this.srf.app.client
  }

  /** Calls `settle` when the connection is lost; the returned function takes it back. */
  whenLost(settle: () => void): () => void {
    this.#pending.add(settle)
    return () => void this.#pending.delete(settle)
  }

  /** The INVITE is being answered, until the returned function is called. */
  answering(request: SipRequest): () => void {
    const callId = request.headers['call-id'] ?? ''
    this.#answering.add(callId)
    return () => void this.#answering.delete(callId)
  }

  /** The Call-IDs of all dialogs and pending INVITEs. */
  callIds(): ReadonlySet<string> {
    const known = new Set(this.#answering)
    for (const id of this.srf._dialogs.keys()) known.add(id.replace(/;from-tag=.*$/, ''))
    for (const { pendingNetworkInvites } of this.agent?.mapServer.values() ?? [])
      for (const callId of pendingNetworkInvites.keys()) known.add(callId)
    return known
  }

  /** The library forgets its bookkeeping silently and settles nothing: that is done here. */
  #lost(): void {
    this.#deps.onLost(this)
    this.srf._dialogs.clear()
    this.#answering.clear()
    for (const settle of [...this.#pending]) settle()
    this.#pending.clear()
  }
}

/** The authorities are read once, at the start. */
function tlsOptions({ caFile }: TlsTrust): ConnectionOptions | { readonly problem: string } {
  if (caFile === undefined) return {}
  try {
    return { ca: readFileSync(caFile) }
  } catch (error) {
    return { problem: messageOf(error) }
  }
}

export const messageOf = (error: unknown): string =>
  error instanceof Error ? error.message : String(error)
