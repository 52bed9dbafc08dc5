/** One TCP connection: a stream of SIP messages both ways (RFC 3261 §18.3). */
import type { Socket } from 'node:net'
import { errorCode } from '../errors.ts'
import type { Flow } from '../flow.ts'
import { encodeMessage } from '../message/decode.ts'
import { StreamFramer } from '../message/stream-framer.ts'
import type { StreamLimits } from './tcp.ts'
import type { TransportCallbacks } from './transport.ts'

export class Connection {
  readonly flow: Flow
  readonly #socket: Socket
  readonly #limits: StreamLimits
  readonly #callbacks: TransportCallbacks
  readonly #framer = new StreamFramer()
  #established: boolean
  #hasDelivered = false
  #failure: string | undefined

  /** @param onClosed called once, when the connection is gone or could not be opened */
  constructor(
    socket: Socket,
    flow: Flow,
    limits: StreamLimits,
    callbacks: TransportCallbacks,
    onClosed: () => void,
  ) {
    this.flow = flow
    this.#socket = socket
    this.#limits = limits
    this.#callbacks = callbacks
    this.#established = !socket.connecting
    socket.setNoDelay(true)
    socket.setKeepAlive(true, limits.keepAliveMs)
    if (socket.connecting) this.#awaitConnect()
    else socket.setTimeout(limits.firstMessageMs)
    socket.on('timeout', () => this.#expire())
    socket.on('data', (chunk) => this.#read(chunk))
    socket.on('error', (error) => {
      this.#failure ??= errorCode(error)
    })
    socket.on('close', () => {
      onClosed()
      if (this.#established) callbacks.connectionClosed(flow)
    })
  }

  /** Never throws; what cannot be written comes back as `sendFailed`. */
  send(text: string, reference: string): void {
    if (this.#socket.writableLength + text.length > this.#limits.maxBufferedBytes) {
      setImmediate(this.#callbacks.sendFailed, reference, 'the peer does not read')
      return
    }
    this.#socket.write(encodeMessage(text), (error) => {
      if (error) this.#callbacks.sendFailed(reference, this.#failure ?? errorCode(error))
    })
  }

  /** Closes after what was written, but does not wait for a peer that reads nothing. */
  close(): void {
    this.#socket.destroySoon()
  }

  destroy(): void {
    this.#socket.destroy()
  }

  #awaitConnect(): void {
    this.#socket.setTimeout(this.#limits.connectMs)
    this.#socket.once('connect', () => {
      this.#established = true
      this.#socket.setTimeout(this.#limits.idleMs)
    })
  }

  #expire(): void {
    this.#failure ??= this.#established ? 'idle' : 'ETIMEDOUT'
    this.#socket.destroy()
  }

  #read(chunk: Buffer): void {
    for (const frame of this.#framer.receive(chunk)) {
      if (frame.kind === 'message') this.#deliver(frame.text)
      else if (frame.kind === 'ping') this.#socket.write('\r\n')
      else this.#fail(frame.reason)
    }
  }

  #deliver(text: string): void {
    if (!this.#hasDelivered) {
      this.#hasDelivered = true
      this.#socket.setTimeout(this.#limits.idleMs)
    }
    this.#callbacks.message(text, this.flow)
  }

  #fail(reason: string): void {
    this.#failure ??= reason
    this.close()
  }
}
