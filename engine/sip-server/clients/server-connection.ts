/**
 * This process as an application of a drachtio-server elsewhere: by TCP or TLS, for as long as it is wanted.
 * A connection that is lost, or whose server is silent, is made again.
 */
import { readFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { connect as connectTls, type ConnectionOptions } from 'node:tls'
import type { AppCommand, Application, ApplicationLink } from '../application.ts'
import type { Log } from '../options.ts'
import { decodeEvent, encodeCommand } from '../wire/application-side.ts'
import { encodeFrame, FrameReader } from '../wire/frame.ts'

export interface ServerPlace {
  readonly host: string
  readonly port: number
  /** `caFile`: PEM file of the authorities; undefined: those that Node.js knows. Without `tls`: TCP. */
  readonly tls?: { readonly caFile: string | undefined } | undefined
}

/** Is told of each connection. */
export interface RemoteApplication extends Application {
  readonly onOpen: (link: ApplicationLink) => void
}

export interface ServerConnectionOptions {
  /** Runs `work` once after `delayMs`; the returned function cancels it. */
  readonly schedule: (work: () => void, delayMs: number) => () => void
  /** Milliseconds. */
  readonly now: () => number
  readonly log: Log
}

const PING_MS = 5_000
/** One may be late because this process stood still. */
const MAX_SILENT_PINGS = 3
/** A server that is back is found within this time. */
const RETRY_MS = 1_000
/** A server that does not read is dropped when so many bytes wait for it. */
const MAX_BUFFERED_BYTES = 16_777_216
/** Of a payload that cannot be read. */
const SHOWN = 80
/** Without a byte for so long the system asks whether the peer is there. */
const KEEP_ALIVE_MS = 10_000

/**
 * Connects `application` to the server at `place`, until the returned `close`.
 * @throws {Error} the file of the authorities cannot be read.
 */
export function connectToServer(
  place: ServerPlace,
  application: RemoteApplication,
  options: ServerConnectionOptions,
): { close(): void } {
  return new ServerConnection(place, application, options)
}

class ServerConnection implements ApplicationLink {
  readonly #place: ServerPlace
  readonly #tls: ConnectionOptions | undefined
  readonly #application: RemoteApplication
  readonly #options: ServerConnectionOptions
  #socket: Socket | undefined
  #isOpen = false
  /** Attempts since the last connection. */
  #failures = 0
  #cancelRetry: () => void = () => undefined
  #isClosed = false

  constructor(
    place: ServerPlace,
    application: RemoteApplication,
    options: ServerConnectionOptions,
  ) {
    const { tls } = place
    this.#place = place
    // The authorities are read once, at the start.
    this.#tls = tls && (tls.caFile === undefined ? {} : { ca: readFileSync(tls.caFile) })
    this.#application = application
    this.#options = options
    this.#connect()
  }

  send(command: AppCommand): void {
    const socket = this.#socket
    if (!this.#isOpen || socket?.writable !== true) return
    socket.write(encodeFrame(encodeCommand(command)))
    if (socket.writableLength > MAX_BUFFERED_BYTES) socket.destroy(new Error('it does not read'))
  }

  close(): void {
    this.#isClosed = true
    this.#cancelRetry()
    if (this.#isOpen) this.#socket?.end()
    else this.#socket?.destroy()
  }

  #connect(): void {
    const { host, port } = this.#place
    const tls = this.#tls
    const socket = tls ? connectTls({ host, port, ...tls }) : connect({ host, port })
    const frames = new FrameReader()
    let stopPinging = (): void => undefined
    this.#socket = socket
    socket.setNoDelay(true)
    socket.setKeepAlive(true, KEEP_ALIVE_MS)
    socket.on(tls ? 'secureConnect' : 'connect', () => {
      this.#isOpen = true
      this.#failures = 0
      stopPinging = this.#pinging(socket)
      this.#application.onOpen(this)
    })
    socket.on('data', (chunk: Buffer) => {
      const { payloads, problem } = frames.push(chunk)
      for (const payload of payloads) this.#hear(payload)
      if (problem !== undefined) socket.destroy(new Error(problem))
    })
    socket.on('error', ({ message: error }) => {
      this.#failures += 1
      // A server may be away for days: the 1st, 2nd, 4th, 8th … attempt is news.
      if ((this.#failures & (this.#failures - 1)) === 0)
        this.#options.log('warn', 'drachtio server unreachable', { error })
    })
    socket.on('close', () => {
      const wasOpen = this.#isOpen
      stopPinging()
      this.#socket = undefined
      this.#isOpen = false
      if (wasOpen) this.#application.onClose()
      if (!this.#isClosed)
        this.#cancelRetry = this.#options.schedule(() => this.#connect(), RETRY_MS)
    })
  }

  #hear(payload: string): void {
    const { now, log } = this.#options
    const event = decodeEvent(payload, now())
    if (event) this.#application.onEvent(event)
    else
      log('error', 'a SIP message could not be handled', {
        error: `unreadable: ${payload.slice(0, SHOWN)}`,
      })
  }

  /**
   * After 15 to 20 s without a byte the server counts as away, whatever TCP still acknowledges: the connection
   * is closed, with all that is on it.
   */
  #pinging(socket: Socket): () => void {
    const { schedule, log } = this.#options
    const { host, port } = this.#place
    let read = 0
    let pings = 0
    let silentPings = 0
    const beat = (): void => {
      silentPings = socket.bytesRead === read ? silentPings + 1 : 0
      read = socket.bytesRead
      if (silentPings === MAX_SILENT_PINGS) {
        log('warn', 'drachtio server is silent', { host, port })
        socket.destroy()
        return
      }
      pings += 1
      socket.write(encodeFrame(`p${pings}|ping`))
      cancel = schedule(beat, PING_MS)
    }
    let cancel = schedule(beat, PING_MS)
    return () => cancel()
  }
}
