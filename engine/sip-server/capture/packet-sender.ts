/**
 * Sends packets by UDP or TLS to a server that may be unreachable or slow, without waiting for it.
 */
import { createSocket, type Socket } from 'node:dgram'
import { lookup } from 'node:dns'
import { isIP } from 'node:net'
import { connect, type ConnectionOptions } from 'node:tls'
import { errorCode } from '../errors.ts'
import type { Machine } from '../machine.ts'
import type { CaptureOptions, ServerLog } from '../options.ts'
import { readAuthorities } from '../transport/credentials.ts'

/** A socket, or the connection that is being made. */
interface Link {
  /** Bytes that were handed over and have not left. */
  readonly waitingBytes: number
  send(packet: Buffer, done: (error?: Error | null) => void): void
  close(): void
}

/** Exactly one `closed` ends a link that nobody has closed here. */
interface LinkEvents {
  readonly opened: () => void
  readonly closed: (reason: string) => void
}

type OpenLink = (events: LinkEvents) => Link

/** Bytes that may wait for the server; beyond, packets are lost. */
const maxWaitingBytes = 4 * 1024 * 1024

const firstRetryMs = 1_000
const maxRetryMs = 30_000

/** A connection that lasts so long counts as good: the next failure is a new one. */
const steadyMs = 60_000

interface PacketSenderOptions extends Pick<CaptureOptions, 'host' | 'port'> {
  readonly open: OpenLink
  readonly schedule: Machine['schedule']
  readonly log: ServerLog
}

export class PacketSender {
  readonly #options: PacketSenderOptions
  #link: Link | undefined
  #isOpen = false
  #isStopped = false
  /** Until the link is open. */
  readonly #early: Buffer[] = []
  #earlyBytes = 0
  #retryMs = firstRetryMs
  /** The present failure is in the log. */
  #isReported = false
  #cancel: () => void = () => undefined
  #sent = 0
  #dropped = 0

  constructor(options: PacketSenderOptions) {
    this.#options = options
    this.#open()
  }

  get sent(): number {
    return this.#sent
  }

  get dropped(): number {
    return this.#dropped
  }

  send(packet: Buffer): void {
    if (this.#isStopped) return
    const waiting = this.#isOpen ? (this.#link?.waitingBytes ?? 0) : this.#earlyBytes
    if (waiting + packet.length > maxWaitingBytes) return this.drop('the server is away or slow')
    if (this.#isOpen) return this.#link?.send(packet, this.#done)
    this.#early.push(packet)
    this.#earlyBytes += packet.length
  }

  /** Counts a packet that is not sent. */
  drop(reason: string): void {
    this.#dropped += 1
    this.#report('packets for the HEP server are lost', reason)
  }

  stop(): void {
    if (this.#isStopped) return
    this.#isStopped = true
    this.#cancel()
    this.#link?.close()
  }

  readonly #done = (error?: Error | null): void => {
    if (!error) this.#sent += 1
    else if (!this.#isStopped) this.drop(errorCode(error))
  }

  #open(): void {
    this.#link = this.#options.open({
      opened: () => this.#opened(),
      closed: (reason) => this.#closed(reason),
    })
  }

  #opened(): void {
    this.#isOpen = true
    this.#earlyBytes = 0
    for (const packet of this.#early.splice(0)) this.#link?.send(packet, this.#done)
    this.#cancel = this.#options.schedule(() => {
      this.#retryMs = firstRetryMs
      this.#isReported = false
    }, steadyMs)
  }

  #closed(reason: string): void {
    this.#isOpen = false
    this.#cancel()
    if (this.#isStopped) return
    this.#report('the HEP server cannot be reached', reason)
    this.#cancel = this.#options.schedule(() => this.#open(), this.#retryMs)
    this.#retryMs = Math.min(2 * this.#retryMs, maxRetryMs)
  }

  #report(message: string, reason: string): void {
    if (this.#isReported) return
    this.#isReported = true
    const { log, host, port } = this.#options
    log('warn', message, { host, port, reason, dropped: this.#dropped })
  }
}

/** @throws CertificateError when the file of the trusted certificates cannot be used. */
export function openLink({ host, port, tls }: CaptureOptions): OpenLink {
  if (tls === undefined) return (events) => openUdp(host, port, events)
  const { caFile, minVersion, verifyServers = true } = tls
  const options: ConnectionOptions = {
    host,
    port,
    rejectUnauthorized: verifyServers,
    ...(caFile !== undefined && { ca: readAuthorities(caFile) }),
    ...(minVersion !== undefined && { minVersion }),
    // RFC 6066 §3: a name, never an address.
    ...(isIP(host) === 0 && { servername: host }),
  }
  return (events) => openTls(options, events)
}

function openUdp(host: string, port: number, { opened, closed }: LinkEvents): Link {
  let socket: Socket | undefined
  let isClosed = false
  const close = (): void => {
    if (!isClosed) socket?.close()
    isClosed = true
  }
  lookup(host, (error, address, family) => {
    if (isClosed) return
    if (error) return closed(errorCode(error))
    socket = createSocket(family === 6 ? 'udp6' : 'udp4').unref()
    const failed = (problem: Error): void => {
      if (isClosed) return
      close()
      closed(errorCode(problem))
    }
    socket.on('error', failed)
    socket.connect(port, address, (problem?: Error) => (problem ? failed(problem) : opened()))
  })
  return {
    get waitingBytes() {
      return socket?.getSendQueueSize() ?? 0
    },
    send: (packet, done) => socket?.send(packet, done),
    close,
  }
}

/** A server that reads nothing for so long while packets wait for it is given up. */
const stallMs = 10_000

/** Waiting packets may take so long to leave at the end. */
const closeMs = 1_000

function openTls(options: ConnectionOptions, { opened, closed }: LinkEvents): Link {
  const socket = connect(options)
  let isOpen = false
  let reason = 'it has closed the connection'
  socket.on('error', (error) => (reason = errorCode(error)))
  socket.on('close', () => closed(reason))
  socket.on('secureConnect', () => {
    isOpen = true
    opened()
  })
  socket.setTimeout(stallMs, () => {
    if (isOpen && socket.writableLength === 0) return
    reason = isOpen ? 'it does not read' : 'no connection in time'
    socket.destroy()
  })
  // The server sends nothing, but only a socket that reads notices the end.
  socket.resume()
  return {
    get waitingBytes() {
      return socket.writableLength
    },
    send: (packet, done) => void socket.write(packet, done),
    close: () => {
      if (!isOpen) return void socket.destroy()
      socket.end()
      setTimeout(() => socket.destroy(), closeMs).unref()
    },
  }
}
