/**
 * An unmodified drachtio-srf, connected to a SIP server of this process by TCP or in process. Only
 * what tests use is typed.
 */
import { EventEmitter } from 'node:events'
import { createRequire } from 'node:module'
import { type Server, Socket } from 'node:net'
import type { InProcessLink, SipServer } from '../../engine/sip-server/index.ts'
import { emitted } from './waiting.ts'

interface SrfMessage {
  readonly method: string
  readonly uri: string
  readonly status: number
  readonly reason: string
  readonly body: string
  readonly msg: { readonly status: number; readonly reason: string; readonly body: string }
  get(name: string): string
  has(name: string): boolean
}

export interface SrfRequest extends SrfMessage, EventEmitter {
  readonly stackTxnId: string
  readonly stackDialogId: string
  readonly source_address: string
  readonly source_port: string
  readonly protocol: string
  cancel(callback?: (error: unknown, request: unknown) => void): void
}

interface SendOptions {
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

export interface SrfResponse extends SrfMessage {
  send(
    status: number,
    options?: SendOptions,
    callback?: (error: unknown, response: SrfMessage) => void,
    onAck?: (ack: SrfMessage) => void,
  ): void
}

export interface SrfDialog extends EventEmitter {
  readonly id: string
  readonly connected: boolean
  readonly local: { readonly sdp: string; readonly contact: string }
  readonly remote: { readonly sdp: string }
  readonly sip: { readonly callId: string; readonly localTag: string; readonly remoteTag: string }
  destroy(options?: SendOptions): Promise<SrfMessage>
  request(options: SendOptions & { readonly method: string }): Promise<SrfMessage>
}

interface LateOffer {
  readonly sdp: string
  readonly res: SrfMessage
  ack(sdp: string): Promise<SrfDialog>
  destroy(): void
}

interface UacOptions {
  readonly localSdp?: string
  readonly proxy?: string
  readonly noAck?: boolean
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly auth?: { readonly username: string; readonly password: string }
}

interface B2buaOptions {
  readonly proxy?: string
  readonly proxyRequestHeaders?: readonly string[]
}

/**
 * The results of `proxyRequest`: the final answers of each destination in the order of their
 * coming.
 */
interface ProxyResults {
  readonly connected: boolean
  readonly finalStatus?: number
  readonly responses: readonly {
    readonly address: string
    readonly port: number
    readonly msgs: readonly { readonly status: number }[]
  }[]
}

type Handler = (request: SrfRequest, response: SrfResponse) => void

export interface Srf extends EventEmitter {
  readonly app: {
    client: Agent
    _init(): Agent
  }
  readonly _dialogs: ReadonlyMap<string, unknown>
  connect(options: object): void
  /** Waits for servers that connect to it; `port` 0 takes a free one. */
  listen(options: object): Server
  /** Ends the connection that brought the request. */
  endSession(request: SrfRequest): void
  use(method: string, handler: Handler): void
  invite(handler: Handler): void
  options(handler: Handler): void
  register(handler: Handler): void
  message(handler: Handler): void
  disconnect(): void
  proxyRequest(
    request: SrfRequest,
    destination: string | readonly string[],
    options?: Readonly<Record<string, unknown>>,
  ): Promise<ProxyResults>
  createUAS(request: SrfRequest, response: SrfResponse, options: object): Promise<SrfDialog>
  createUAC(uri: string, options: UacOptions & { readonly noAck: true }): Promise<LateOffer>
  createUAC(uri: string, options: UacOptions): Promise<SrfDialog>
  createB2BUA(
    request: SrfRequest,
    response: SrfResponse,
    uri: string,
    options: B2buaOptions,
  ): Promise<{ uas: SrfDialog; uac: SrfDialog }>
  request(
    uri: string,
    options: SendOptions & {
      readonly method: string
      readonly proxy?: string
      readonly auth?: { readonly username: string; readonly password: string }
    },
  ): Promise<SrfRequest>
}

interface Pending {
  readonly size: number
}

interface Agent extends EventEmitter {
  secret: string
  tags: readonly string[]
  wp: EventEmitter
  readonly idle: boolean
  readonly pendingSipAuthTxnIdUpdate: Pending
  readonly mapServer: ReadonlyMap<
    unknown,
    {
      readonly pendingRequests: Pending
      readonly pendingSipRequests: Pending
      readonly pendingNetworkInvites: Pending
      readonly pendingAckOrPrack: Pending
      readonly pendingSipAuthRequests: Pending
    }
  >
  _onConnect(socket: unknown): void
  _onClose(socket: unknown): void
  _onMsg(socket: unknown, payload: string): void
}

// The package has no types of its own.
const Srf = createRequire(import.meta.url)('drachtio-srf') as new (tags?: readonly string[]) => Srf

/** Not connected yet. */
export const newSrf = (tags?: readonly string[]): Srf => new Srf(tags)

export interface ConnectedSrf {
  readonly srf: Srf
  close(): void
}

export type Connector = (
  server: SipServer,
  options?: { readonly secret?: string; readonly tags?: readonly string[] },
  prepare?: (srf: Srf) => void,
) => Promise<ConnectedSrf>

/** As an application on another machine would: through the admin port. */
export const connectByTcp = async (
  server: Pick<SipServer, 'adminAddress'>,
  options: Parameters<Connector>[1] = {},
  prepare?: (srf: Srf) => void,
): Promise<ConnectedSrf> => {
  const srf = new Srf(options.tags)
  prepare?.(srf)
  const { host, port } = server.adminAddress ?? { host: '', port: 0 }
  srf.on('error', () => undefined)
  srf.connect({ host, port, secret: options.secret ?? 'cymru', reconnect: { maxAttempts: 1 } })
  return welcomed(srf, () => {
    if (srf.app.client.mapServer.size > 0) srf.disconnect()
  })
}

/** Without sockets and framing: the library's wire protocol object is replaced. */
export const connectInProcess: Connector = async (server, options = {}, prepare) => {
  const srf = new Srf(options.tags)
  prepare?.(srf)
  const agent = srf.app._init()
  srf.app.client = agent
  agent.secret = options.secret ?? 'cymru'
  agent.tags = options.tags ?? []
  const wire = new InProcessWire()
  agent.wp = wire
  wire.on('connect', (socket) => agent._onConnect(socket))
  wire.on('close', (socket) => agent._onClose(socket))
  wire.on('msg', (socket: unknown, payload: string) => agent._onMsg(socket, payload))
  const connected = welcomed(srf, () => wire.close())
  wire.connect(server)
  return connected
}

/**
 * Joins the caller to `uri`: the end of one leg ends the other. A call that fails has told its
 * caller.
 */
export async function bridge(
  srf: Srf,
  request: SrfRequest,
  response: SrfResponse,
  uri: string,
): Promise<void> {
  try {
    const options = { proxyRequestHeaders: ['Subject'] }
    const { uas, uac } = await srf.createB2BUA(request, response, uri, options)
    const end = (dialog: SrfDialog): void => void dialog.destroy().catch(() => undefined)
    uas.on('destroy', () => end(uac))
    uac.on('destroy', () => end(uas))
    // Either side may have hung up before the application got here (wire/README.md §7.1).
    if (!uas.connected) end(uac)
    if (!uac.connected) end(uas)
  } catch {
    // Cancelled, refused or silent: the library has answered the caller.
  }
}

/** The next response to a request of the application. */
export const responseTo = (request: SrfRequest): Promise<SrfMessage> =>
  new Promise((resolve) => request.once('response', resolve))

/** `connect` carries an error when the server did not let the application in. */
async function welcomed(srf: Srf, close: () => void): Promise<ConnectedSrf> {
  const [error] = await emitted(srf, 'connect')
  if (error instanceof Error) throw error
  return { srf, close }
}

/** Stands in for the library's WireProtocol (wire/README.md §7.4). */
class InProcessWire extends EventEmitter {
  readonly isClient = true
  readonly isServer = false
  readonly #socket = keySocket()
  #link: InProcessLink | undefined
  #lastId = 0

  connect(server: SipServer): void {
    this.#link = server.connectInProcess({
      onPayload: (payload) => this.emit('msg', this.#socket, payload),
      onClose: () => this.emit('close', this.#socket),
    })
    this.emit('connect', this.#socket)
  }

  send(_socket: unknown, message: string): string {
    const id = `i${++this.#lastId}`
    this.#link?.send(`${id}|${message}`)
    return id
  }

  close(): void {
    this.#link?.close()
    this.emit('close', this.#socket)
  }

  startPinging(): void {}
  _stopPinging(): void {}
}

/** A key of the library's maps, which it only accepts when it is a socket; never connected. */
function keySocket(): Socket {
  return Object.defineProperties(new Socket(), {
    remoteAddress: { value: '127.0.0.1' },
    remotePort: { value: 0 },
    localPort: { value: 0 },
    destroyed: { value: false },
  })
}

/**
 * Everything that drachtio-srf still keeps for requests and dialogs. All 0 when nothing goes on.
 */
export function bookkeeping(srf: Srf): Record<string, number> {
  const sizes: Record<string, number> = {
    dialogs: srf._dialogs.size,
    authUpdates: srf.app.client.pendingSipAuthTxnIdUpdate.size,
  }
  for (const state of srf.app.client.mapServer.values()) {
    sizes['requests'] = state.pendingRequests.size
    sizes['sipRequests'] = state.pendingSipRequests.size
    sizes['networkInvites'] = state.pendingNetworkInvites.size
    sizes['ackOrPrack'] = state.pendingAckOrPrack.size
    sizes['sipAuthRequests'] = state.pendingSipAuthRequests.size
  }
  return sizes
}
