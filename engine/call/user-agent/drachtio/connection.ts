/**
 * One connection to a drachtio-server elsewhere, by drachtio-srf: what call control sends becomes
 * calls of the library, and its callbacks become events. A connection that is lost, or whose server
 * is silent, is opened again.
 */
import type { EventEmitter } from 'node:events'
import { readFileSync } from 'node:fs'
import type { Socket } from 'node:net'
import type { ConnectionOptions } from 'node:tls'
import type { Log } from '../../../../schema/contracts/log.ts'
import type {
  AppMessage,
  MessageFlow,
  RequestWay,
  SentReply,
  SipPortEvent,
  SipSender,
} from '../../../sip-server/application.ts'
import { parseAppMessage, reasonPhrase, type SipMessage } from '../../../../schema/sip/index.ts'
import type { Schedule } from '../../../../schema/clock.ts'
import { messageOf } from '../received-request.ts'
import {
  type LibraryAcknowledge,
  type Callback,
  loadLibrary,
  type Parts,
  type RawMessage,
  type ServerMessage,
  type Srf,
  type SrfRequest,
  type SrfResponse,
} from './library.ts'

/** Where a drachtio-server takes applications. */
export interface ServerAddress {
  readonly host: string
  readonly port: number
  readonly secret: string
  /** Undefined: without TLS. */
  readonly tls?: TlsTrust | undefined
}

/** Which authorities the server's certificate must be signed by. */
interface TlsTrust {
  /** PEM file of one authority or several; undefined: those that Node.js knows. */
  readonly caFile: string | undefined
}

/** The user of a connection, which is called for each time that it is made. */
export interface ConnectionUser {
  /** Methods of requests that it takes, in lower case. */
  readonly methods: readonly string[]
  readonly onConnected: (version: string) => void
  readonly onRefused: (reason: string) => void
  readonly onEvent: (event: SipPortEvent, sender: SipSender | undefined) => void
  /** The connection was lost, with all its dialogs. */
  readonly onLost: () => void
}

export interface ConnectionDeps {
  readonly schedule: Schedule
  /** Milliseconds. */
  readonly now: () => number
  readonly log: Log
}

const PING_MS = 5_000
/** A reply may be late because this process stood still. */
const MAX_SILENT_PINGS = 3
/** A server that is available again is found within this time. */
const RETRY_MS = 1_000
/** A server that does not read is dropped when so many bytes wait for it. */
const MAX_BUFFERED_BYTES = 16_777_216
/** The shown length of an unreadable message. */
const SHOWN = 80

/** The error of drachtio-srf for a closed socket. The event `close` follows. */
const isGone = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && error.code === 'ESOCKETDESTROYED'

const ignore = (): void => undefined

export class DrachtioConnection {
  /** Ids of dialogs and transactions begin with it; empty for the only server. */
  readonly name: string
  readonly #server: ServerAddress
  readonly #tls: ConnectionOptions | undefined
  readonly #user: ConnectionUser
  readonly #deps: ConnectionDeps
  #srf: Srf | undefined
  #socket: Socket | undefined
  #isReady = false
  #hostPorts: readonly string[] = []
  #isTollgate = false
  /** Senders that wait for a reply. */
  readonly #waiting = new Set<SipSender>()
  /** Received requests that have no final response, by transaction. */
  readonly #received = new Map<string, SrfResponse>()
  /** Sent INVITEs that can be cancelled, by transaction. */
  readonly #invites = new Map<string, SrfRequest>()
  /** Responses that wait for an ACK or a PRACK, by dialog. */
  readonly #unacknowledged = new Map<string, readonly [LibraryAcknowledge, SrfResponse]>()
  /** Attempts since the last connection. */
  #failures = 0
  #cancelRetry = ignore
  #isClosed = false

  /**
   * Connects to the server, until `close`.
   * @throws {Error} the file of the authorities cannot be read.
   */
  constructor(name: string, server: ServerAddress, user: ConnectionUser, deps: ConnectionDeps) {
    const { tls } = server
    this.name = name
    this.#server = server
    // The authorities are read once, at the start.
    this.#tls = tls && (tls.caFile === undefined ? {} : { ca: readFileSync(tls.caFile) })
    this.#user = user
    this.#deps = deps
    void loadLibrary().then((library) => library && this.#open(library))
  }

  /** The server has authenticated us. */
  get isReady(): boolean {
    return this.#isReady
  }

  /** Advertised addresses of the server. Empty before the first connection. */
  get hostPorts(): readonly string[] {
    return this.#hostPorts
  }

  /** The server is one of ours, in another process. */
  get isTollgate(): boolean {
    return this.#isTollgate
  }

  /** How many requests and responses wait for their reply. */
  get unconfirmed(): number {
    return this.#waiting.size
  }

  close(): void {
    this.#isClosed = true
    this.#cancelRetry()
    if (this.#socket) this.#srf?.disconnect()
  }

  /**
   * Each connection has its own instance of the library: no state is left over, and the reconnects
   * of the library lose TLS.
   */
  #open(Library: new () => Srf): void {
    if (this.#isClosed) return
    const { host, port, secret } = this.#server
    const srf = new Library()
    const tls = this.#tls && { tls: this.#tls }
    srf.use((request, response) => this.#onRequest(request, response))
    for (const method of this.#user.methods) srf.use(method, ignore)
    srf.on('error', ({ message: error }: Error) => this.#onFailure(error))
    srf.connect(
      { host, port, secret, ...tls, reconnect: { maxAttempts: 1 } },
      (error, hostPorts, version) => this.#onAuthenticated(error, hostPorts, version ?? ''),
    )
    this.#srf = srf
    const { wp } = srf.app.client
    let stopPinging = ignore
    // Else what cannot be read ends this process.
    catchThrown(wp, 'msg', (error) => this.#unreadable(messageOf(error)))
    wp.prependListener('connect', (socket: Socket) => {
      if (this.#isClosed) return socket.destroy()
      catchThrown(socket, 'data', (error) => socket.destroy(new Error(messageOf(error))))
      stopPinging = this.#pinging(socket, () => wp.send(socket, 'ping'))
      this.#socket = socket
      return undefined
    })
    wp.on('close', () => {
      stopPinging()
      this.#onClose()
      if (this.#isClosed) return
      this.#cancelRetry = this.#deps.schedule(() => this.#open(Library), RETRY_MS)
    })
  }

  #onFailure(error: string): void {
    this.#failures += 1
    // A server may be unavailable for days: only the 1st, 2nd, 4th, 8th … attempt is logged.
    if ((this.#failures & (this.#failures - 1)) === 0)
      this.#deps.log('warn', 'drachtio server unreachable', { error })
  }

  #onAuthenticated(error: unknown, hostPorts: string, version: string): void {
    this.#failures = 0
    if (error !== null) return this.#user.onRefused(messageOf(error))
    this.#isReady = true
    this.#isTollgate = version.includes('tollgate')
    this.#hostPorts = hostPorts.split(',')
    return this.#user.onConnected(version)
  }

  #onClose(): void {
    const wasReady = this.#isReady
    this.#socket = undefined
    this.#isReady = false
    this.#waiting.clear()
    for (const table of [this.#received, this.#invites, this.#unacknowledged]) table.clear()
    if (wasReady) this.#user.onLost()
  }

  /**
   * After 15 to 20 s without a byte the server counts as unavailable, whatever TCP still
   * acknowledges: the connection is closed, with all its dialogs.
   */
  #pinging(socket: Socket, ping: () => void): () => void {
    const { schedule, log } = this.#deps
    const { host, port } = this.#server
    let read = 0
    let silentPings = 0
    const beat = (): void => {
      silentPings = socket.bytesRead === read ? silentPings + 1 : 0
      read = socket.bytesRead
      if (silentPings === MAX_SILENT_PINGS) {
        log('warn', 'drachtio server is silent', { host, port })
        socket.destroy()
        return
      }
      ping()
      cancel = schedule(beat, PING_MS)
    }
    let cancel = schedule(beat, PING_MS)
    return () => cancel()
  }

  // ---- what call control sends ----

  request(message: AppMessage, way: RequestWay, sender: SipSender | undefined): boolean {
    const srf = this.#srf
    if (!this.#isReady || srf === undefined) return false
    const { method, uri } = message
    const parts = partsOf(message)
    if (method === 'ACK' || method === 'PRACK') this.#acknowledge(way.dialogId, parts)
    else {
      if (sender) this.#waiting.add(sender)
      const stackDialogId = way.dialogId.slice(this.name.length)
      srf.request(
        uri,
        { ...parts, method, proxy: way.nextHop, stackDialogId },
        this.#onSent(sender),
      )
    }
    this.#dropIfFull()
    return true
  }

  /**
   * After a CANCEL without final response a drachtio-server reports nothing more about the INVITE.
   */
  cancel(transactionId: string, message: AppMessage): void {
    const invite = this.#invites.get(transactionId)
    this.#invites.delete(transactionId)
    invite?.cancel(partsOf(message), this.#onSent(undefined))
    this.#dropIfFull()
  }

  respond(transactionId: string, message: AppMessage, sender: SipSender | undefined): boolean {
    if (!this.#isReady) return false
    if (sender) this.#waiting.add(sender)
    const response = this.#received.get(transactionId)
    if (response === undefined) this.#refuse(sender, 'the transaction is over')
    else {
      if (message.status >= 200) this.#received.delete(transactionId)
      this.#send(response, message, sender)
      this.#dropIfFull()
    }
    return true
  }

  #send(response: SrfResponse, message: AppMessage, sender: SipSender | undefined): void {
    const { status, reason } = message
    const parts = partsOf(message)
    const done: Callback<RawMessage> = (error, sent) => {
      const written = sent && this.#read(sent.raw)
      if (written === undefined) return this.#refuse(sender, error)
      const dialogId = this.#idOf(response.stackDialogId)
      const details = { ...this.#detailsOf(response, written), dialogId }
      return this.#reply({ kind: 'response-sent', ...details, localTag: written.toTag }, sender)
    }
    try {
      return response.send(status, reason, parts, done)
    } catch {
      // The table of the library ends at 606.
      Object.assign(response, { status, reason: reason || reasonPhrase(status) })
      return response.agent.sendResponse(response, parts, done)
    }
  }

  #acknowledge(dialogId: string, parts: Parts): void {
    const [acknowledge, response] = this.#unacknowledged.get(dialogId) ?? []
    this.#unacknowledged.delete(dialogId)
    acknowledge?.(parts, (error, sent) => {
      const message = sent && this.#read(sent.raw)
      if (message === undefined || response === undefined) return this.#refuse(undefined, error)
      const details = { ...this.#detailsOf(response, message), sent: undefined }
      return this.#reply({ kind: 'request-sent', ...details }, undefined)
    })
  }

  #onSent(sender: SipSender | undefined): Callback<SrfRequest> {
    return (error, request) => {
      const message = request && this.#read(request.raw)
      if (request === undefined || message === undefined) return this.#refuse(sender, error)
      const { method, uri, callId, cseq } = message
      const details = this.#detailsOf(request, message)
      if (method === 'CANCEL')
        return this.#reply({ kind: 'request-sent', ...details, sent: undefined }, sender)
      if (method === 'INVITE') this.#invites.set(details.transactionId, request)
      request.on('response', (response, acknowledge) => this.#onResponse(response, acknowledge))
      request.on('update', (update, response) => this.#onRequest(update, response))
      const sent = { method, uri, callId, from: message.get('From') ?? '', cseq: cseq?.number ?? 0 }
      return this.#reply({ kind: 'request-sent', ...details, sent }, sender)
    }
  }

  #dropIfFull(): void {
    const socket = this.#socket
    if (socket && socket.writableLength > MAX_BUFFERED_BYTES)
      socket.destroy(new Error('it does not read'))
  }

  /** Reports the reason of the server, unless the connection has just closed. */
  #refuse(sender: SipSender | undefined, error: unknown): void {
    if (!isGone(error)) this.#reply({ kind: 'refused', problem: messageOf(error) }, sender)
  }

  /** A sender gets no reply when its connection was lost meanwhile. */
  #reply(reply: SentReply, sender: SipSender | undefined): void {
    const waits = sender !== undefined && this.#waiting.delete(sender)
    this.#user.onEvent(reply, waits ? sender : undefined)
  }

  // ---- events from the server ----

  #onRequest(request: SrfRequest, response: SrfResponse): void {
    const message = this.#read(request.raw)
    if (message === undefined) return
    const details = this.#detailsOf(request, message)
    const { transactionId, dialogId } = details
    const isNew = dialogId === ''
    if (request.source !== 'network') return this.#emit({ kind: 'unsolicited', ...details })
    if (message.method !== 'ACK') this.#received.set(transactionId, response)
    if (message.method === 'INVITE' && isNew)
      request.on('cancel', ({ raw }) => {
        const cancel = this.#read(raw)
        // The server has answered both.
        this.#received.delete(transactionId)
        if (cancel)
          this.#emit({ kind: 'request', ...this.#detailsOf(request, cancel), isNew: false })
      })
    this.#emit({ kind: 'request', ...details, isNew })
  }

  #onResponse(response: SrfResponse, acknowledge: LibraryAcknowledge): void {
    const message = this.#read(response.raw)
    if (message === undefined) return
    const details = this.#detailsOf(response, message)
    if (message.status >= 200) this.#invites.delete(details.transactionId)
    const isReliable = message.status < 200 && message.has('RSeq')
    const isAnswer = message.status >= 200 && message.status < 300
    if (message.method === 'INVITE' && (isReliable || isAnswer))
      this.#unacknowledged.set(details.dialogId, [acknowledge, response])
    this.#emit({ kind: 'response', ...details })
  }

  #detailsOf(
    { protocol: transport, source_address: address, source_port: port, ...ids }: ServerMessage,
    message: SipMessage,
  ) {
    const protocol = protocols.find((known) => known === transport.toLowerCase()) ?? 'udp'
    const own = { address, port, advertisedHost: address, advertisedPort: port }
    return {
      transactionId: this.#idOf(ids.stackTxnId),
      dialogId: this.#idOf(ids.stackDialogId),
      text: message.text,
      message,
      came: message.text,
      flow: { address, port, listener: { protocol, ...own } },
      now: this.#deps.now(),
    }
  }

  /** Undefined: it cannot be read. */
  #read(raw: string): SipMessage | undefined {
    const message = parseAppMessage(raw)
    if (message === undefined) this.#unreadable(`unreadable: ${raw.slice(0, SHOWN)}`)
    return message
  }

  #unreadable(error: string): void {
    this.#deps.log('error', 'a SIP message could not be handled', { error })
  }

  /** Empty for what belongs to no dialog. */
  #idOf(id = ''): string {
    return id === '' ? '' : this.name + id
  }

  #emit(event: SipPortEvent): void {
    this.#user.onEvent(event, undefined)
  }
}

/** The library has one value for each name: a second one becomes a line of its own in it. */
function partsOf(message: AppMessage): Parts {
  const headers: Record<string, string> = {}
  message.forEach((name, value) => {
    headers[name] = name in headers ? `${headers[name]}\r\n${name}: ${value}` : value
  })
  return { headers, body: message.body }
}

const protocols: readonly MessageFlow['listener']['protocol'][] = ['udp', 'tcp', 'tls', 'ws', 'wss']

/** Passes errors that a listener of `event` throws to `failed`. */
function catchThrown(source: EventEmitter, event: string, failed: (error: unknown) => void): void {
  const listeners = source.listeners(event)
  source.removeAllListeners(event)
  source.on(event, (...args: unknown[]) => {
    try {
      for (const listener of listeners) Reflect.apply(listener, source, args)
    } catch (error) {
      failed(error)
    }
  })
}
