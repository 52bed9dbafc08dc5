/**
 * This process as an application of a drachtio-server elsewhere, by drachtio-srf: commands of call
 * control become its calls, and its callbacks become events. A connection that is lost, or whose
 * server is silent, is opened again.
 */
import type { EventEmitter } from 'node:events'
import { readFileSync } from 'node:fs'
import type { Socket } from 'node:net'
import type { ConnectionOptions } from 'node:tls'
import type { Log } from '../../../../schema/contracts/log.ts'
import type {
  AppCommand,
  AppEvent,
  AppMessage,
  Application,
  ApplicationLink,
  MessageFlow,
} from '../../../sip-server/application.ts'
import { parseAppMessage, reasonPhrase, type SipMessage } from '../../../sip-server/message/index.ts'
import type { Schedule } from '../../deadlines.ts'
import { messageOf } from '../received-request.ts'
import type { ServerAddress } from '../server-link.ts'

/** Call control, as it is called for each connection. */
export interface RemoteApplication extends Application {
  /** Methods of requests that it takes, in lower case. */
  readonly verbs: readonly string[]
  readonly onOpen: (link: ApplicationLink) => void
}

export interface DrachtioOptions {
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

/**
 * Connects `application` to the server at `place`, until the returned `close`.
 * @throws {Error} the file of the authorities cannot be read.
 */
export function connectToServer(
  server: ServerAddress,
  application: RemoteApplication,
  options: DrachtioOptions,
): { close(): void } {
  const connection = new DrachtioConnection(server, application, options)
  void loadLibrary().then((library) => library && connection.open(library))
  return connection
}

// ---- the used part of drachtio-srf 5.0, whose own types lack most of it ----

interface RawMessage {
  /** The whole message as the server wrote it. */
  readonly raw: string
}

interface ServerMessage extends RawMessage {
  readonly source: 'network' | 'application'
  readonly source_address: string
  readonly source_port: number
  readonly protocol: string
  readonly stackTxnId: string
  /** Absent on a request that has just been sent. */
  readonly stackDialogId?: string
}

interface Parts {
  readonly headers: Record<string, string>
  readonly body: string
}

/** `error` is the server's reason as text, or an error of the library. */
type Callback<T> = (error: unknown, result?: T) => void

/** ACK of a final response, or PRACK of a reliable one. */
type Acknowledge = (parts: Parts, done: Callback<RawMessage>) => void

interface SrfRequest extends ServerMessage {
  on(event: 'response', listener: (response: SrfResponse, acknowledge: Acknowledge) => void): void
  on(event: 'update', listener: (request: SrfRequest, response: SrfResponse) => void): void
  on(event: 'cancel', listener: (cancel: RawMessage) => void): void
  cancel(parts: Parts, done: Callback<SrfRequest>): void
}

interface SrfResponse extends ServerMessage {
  status: number
  reason: string
  readonly agent: {
    sendResponse(response: SrfResponse, parts: Parts, done: Callback<RawMessage>): void
  }
  /** @throws {Error} for a status that is not in its table. */
  send(status: number, reason: string, parts: Parts, done: Callback<RawMessage>): void
}

interface Srf extends EventEmitter {
  /** `wp` is not documented: it gives access to the socket and to received messages. */
  readonly app: {
    readonly client: {
      readonly wp: EventEmitter & { send(socket: Socket, message: string): string }
    }
  }
  use(handler: (request: SrfRequest, response: SrfResponse) => void): void
  use(verb: string, handler: () => void): void
  connect(
    options: Pick<ServerAddress, 'host' | 'port' | 'secret'> & {
      readonly tls?: ConnectionOptions
      readonly reconnect: { readonly maxAttempts: number }
    },
    connected: (
      error: unknown,
      hostPorts: string,
      version: string | null,
      localHostPorts: string | null,
    ) => void,
  ): void
  request(
    uri: string,
    request: Parts & {
      readonly method: string
      /** The next hop; empty: the request URI decides. */
      readonly proxy: string
      readonly stackDialogId: string
    },
    done: Callback<SrfRequest>,
  ): void
  disconnect(): void
}

/** Processes with a server of their own never load it. */
async function loadLibrary(): Promise<(new () => Srf) | undefined> {
  const { default: library }: { readonly default: unknown } = await import('drachtio-srf')
  return isSrf(library) ? library : undefined
}

const isSrf = (library: unknown): library is new () => Srf => typeof library === 'function'

/** The error of drachtio-srf for a closed socket. The event `close` follows. */
const isGone = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && error.code === 'ESOCKETDESTROYED'

const ignore = (): void => undefined

class DrachtioConnection implements ApplicationLink {
  readonly #server: ServerAddress
  readonly #tls: ConnectionOptions | undefined
  readonly #application: RemoteApplication
  readonly #options: DrachtioOptions
  #srf: Srf | undefined
  #socket: Socket | undefined
  /** The answer to `authenticate`, which drachtio-srf has sent. */
  #welcome: Extract<AppEvent, { readonly kind: 'authenticated' | 'breach' }> | undefined
  /** Received requests that have no final response, by transaction. */
  readonly #received = new Map<string, SrfResponse>()
  /** Sent INVITEs that can be cancelled, by transaction. */
  readonly #invites = new Map<string, SrfRequest>()
  /** Responses that wait for an ACK or a PRACK, by dialog. */
  readonly #unacknowledged = new Map<string, readonly [Acknowledge, SrfResponse]>()
  /** Attempts since the last connection. */
  #failures = 0
  #cancelRetry = ignore
  #isClosed = false

  constructor(server: ServerAddress, application: RemoteApplication, options: DrachtioOptions) {
    const { tls } = server
    this.#server = server
    // The authorities are read once, at the start.
    this.#tls = tls && (tls.caFile === undefined ? {} : { ca: readFileSync(tls.caFile) })
    this.#application = application
    this.#options = options
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
  open(Library: new () => Srf): void {
    if (this.#isClosed) return
    const { host, port, secret } = this.#server
    const srf = new Library()
    const tls = this.#tls && { tls: this.#tls }
    srf.use((request, response) => this.#onRequest(request, response))
    for (const verb of this.#application.verbs) srf.use(verb, ignore)
    srf.on('error', ({ message: error }: Error) => this.#onFailure(error))
    srf.connect({ host, port, secret, ...tls, reconnect: { maxAttempts: 1 } }, (error, ...about) =>
      this.#onAuthenticated(error, about),
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
      this.#cancelRetry = this.#options.schedule(() => this.open(Library), RETRY_MS)
    })
  }

  #onFailure(error: string): void {
    this.#failures += 1
    // A server may be unavailable for days: only the 1st, 2nd, 4th, 8th … attempt is logged.
    if ((this.#failures & (this.#failures - 1)) === 0)
      this.#options.log('warn', 'drachtio server unreachable', { error })
  }

  #onAuthenticated(
    error: unknown,
    [hostPorts, version, local]: readonly [string, string | null, string | null],
  ): void {
    const commandId = ''
    this.#failures = 0
    this.#welcome =
      error === null
        ? {
            kind: 'authenticated',
            commandId,
            hostports: hostPorts.split(','),
            version: version ?? '',
            localHostports: (local ?? '').split(','),
          }
        : { kind: 'breach', commandId, problem: messageOf(error) }
    this.#application.onOpen(this)
  }

  #onClose(): void {
    const wasOpen = this.#welcome !== undefined
    this.#socket = undefined
    this.#welcome = undefined
    for (const table of [this.#received, this.#invites, this.#unacknowledged]) table.clear()
    if (wasOpen) this.#application.onClose()
  }

  /**
   * After 15 to 20 s without a byte the server counts as unavailable, whatever TCP still
   * acknowledges: the connection is closed, with all its dialogs.
   */
  #pinging(socket: Socket, ping: () => void): () => void {
    const { schedule, log } = this.#options
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

  // ---- commands of call control ----

  send({ id, command }: AppCommand): void {
    const welcome = this.#welcome
    const [srf, socket] = [this.#srf, this.#socket]
    if (welcome === undefined || srf === undefined || socket === undefined) return
    if (command?.kind === 'authenticate')
      queueMicrotask(() => this.#application.onEvent({ ...welcome, commandId: id }))
    if (command?.kind !== 'sip' || command.message === undefined) return
    const { message } = command
    const headers: Record<string, string> = {}
    // The library has one value for each name: a second one becomes a line of its own in it.
    message.forEach((name, value) => {
      headers[name] = name in headers ? `${headers[name]}\r\n${name}: ${value}` : value
    })
    const parts = { headers, body: message.body }
    if (message.kind === 'response') this.#respond(id, command.transactionId, message, parts)
    else if (message.method === 'ACK' || message.method === 'PRACK')
      this.#acknowledge(id, command.dialogId, parts)
    else if (message.method === 'CANCEL') this.#cancel(id, command.transactionId, parts)
    else
      srf.request(
        message.uri,
        {
          ...parts,
          method: message.method,
          proxy: command.routeUrl,
          stackDialogId: command.dialogId,
        },
        this.#onSent(id),
      )
    if (socket.writableLength > MAX_BUFFERED_BYTES) socket.destroy(new Error('it does not read'))
  }

  #respond(
    commandId: string,
    transactionId: string,
    { status, reason }: Pick<AppMessage, 'status' | 'reason'>,
    parts: Parts,
  ): void {
    const response = this.#received.get(transactionId)
    if (response === undefined) return this.#refuse(commandId, 'the transaction is over')
    if (status >= 200) this.#received.delete(transactionId)
    const done: Callback<RawMessage> = (error, sent) => {
      const message = sent && this.#read(sent.raw)
      if (message === undefined) return this.#refuse(commandId, error)
      const { stackDialogId: dialogId = '' } = response
      const details = { ...this.#detailsOf(response, message), commandId, dialogId }
      return this.#emit({ kind: 'response-sent', ...details, localTag: message.toTag })
    }
    try {
      return response.send(status, reason, parts, done)
    } catch {
      // The table of the library ends at 606.
      Object.assign(response, { status, reason: reason || reasonPhrase(status) })
      return response.agent.sendResponse(response, parts, done)
    }
  }

  #acknowledge(commandId: string, dialogId: string, parts: Parts): void {
    const [acknowledge, response] = this.#unacknowledged.get(dialogId) ?? []
    this.#unacknowledged.delete(dialogId)
    acknowledge?.(parts, (error, sent) => {
      const message = sent && this.#read(sent.raw)
      if (message === undefined || response === undefined) return this.#refuse(commandId, error)
      const details = { ...this.#detailsOf(response, message), commandId, sent: undefined }
      return this.#emit({ kind: 'request-sent', ...details })
    })
  }

  /**
   * After a CANCEL without final response a drachtio-server reports nothing more about the INVITE.
   */
  #cancel(commandId: string, transactionId: string, parts: Parts): void {
    const invite = this.#invites.get(transactionId)
    this.#invites.delete(transactionId)
    invite?.cancel(parts, this.#onSent(commandId))
  }

  readonly #onSent =
    (commandId: string): Callback<SrfRequest> =>
    (error, request) => {
      const message = request && this.#read(request.raw)
      if (request === undefined || message === undefined) return this.#refuse(commandId, error)
      const { method, uri, callId, cseq } = message
      const details = { ...this.#detailsOf(request, message), commandId }
      if (method === 'CANCEL')
        return this.#emit({ kind: 'request-sent', ...details, sent: undefined })
      if (method === 'INVITE') this.#invites.set(request.stackTxnId, request)
      request.on('response', (response, acknowledge) => this.#onResponse(response, acknowledge))
      request.on('update', (update, response) => this.#onRequest(update, response))
      const sent = { method, uri, callId, from: message.get('From') ?? '', cseq: cseq?.number ?? 0 }
      return this.#emit({ kind: 'request-sent', ...details, sent })
    }

  /** Reports the reason of the server, unless the connection has just closed. */
  #refuse(commandId: string, error: unknown): void {
    if (isGone(error)) return
    this.#emit({ kind: 'refused', commandId, problem: messageOf(error) })
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

  #onResponse(response: SrfResponse, acknowledge: Acknowledge): void {
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
      transactionId: ids.stackTxnId,
      dialogId: ids.stackDialogId ?? '',
      text: message.text,
      message,
      came: message.text,
      flow: { address, port, listener: { protocol, ...own } },
      now: this.#options.now(),
    }
  }

  /** Undefined: it cannot be read. */
  #read(raw: string): SipMessage | undefined {
    const message = parseAppMessage(raw)
    if (message === undefined) this.#unreadable(`unreadable: ${raw.slice(0, SHOWN)}`)
    return message
  }

  #unreadable(error: string): void {
    this.#options.log('error', 'a SIP message could not be handled', { error })
  }

  #emit(event: AppEvent): void {
    this.#application.onEvent(event)
  }
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
