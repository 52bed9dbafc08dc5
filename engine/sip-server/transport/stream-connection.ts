/** One TCP or TLS connection: a stream of SIP messages both ways (RFC 3261 §18.3). */
import type { Socket } from 'node:net'
import { errorCode } from '../errors.ts'
import type { Flow } from '../flow.ts'
import { byteLength, encodeMessage } from '../../../schema/sip/message.ts'
import { type Frame, maxMessageBytes, StreamFramer } from '../../../schema/sip/stream-framer.ts'
import { maxWaitingPongs, type StreamLimits } from './sources.ts'
import type { TransportCallbacks } from './transport.ts'

export interface StreamConnectionOptions {
  readonly socket: Socket
  readonly flow: Flow
  /** The event after which a connection that we open can be used; undefined: it was accepted. */
  readonly readyEvent: 'connect' | 'secureConnect' | undefined
  readonly limits: StreamLimits
  readonly callbacks: TransportCallbacks
  /** Called once, when the connection is gone or could not be opened, and then with the reason. */
  readonly onClosed: (failure: string | undefined) => void
}

export class StreamConnection {
  readonly flow: Flow
  readonly socket: Socket
  readonly #limits: StreamLimits
  readonly #callbacks: TransportCallbacks
  readonly #framer = new StreamFramer()
  #established: boolean
  /** Messages to send once the connection is open, and their size. */
  readonly #waiting: { readonly text: string; readonly reference: string }[] = []
  #waitingBytes = 0
  /**
   * Until it can be used, or its first or a begun message is whole: dripping bytes gains no time.
   */
  #patience: NodeJS.Timeout | undefined
  #failure: string | undefined
  #waitingPongs = 0

  constructor({ socket, flow, readyEvent, limits, callbacks, onClosed }: StreamConnectionOptions) {
    this.flow = flow
    this.socket = socket
    this.#limits = limits
    this.#callbacks = callbacks
    this.#established = readyEvent === undefined
    socket.setNoDelay(true)
    socket.setKeepAlive(true, limits.keepAliveMs)
    this.#allow(readyEvent === undefined ? limits.messageMs : limits.connectMs)
    if (readyEvent) socket.once(readyEvent, () => this.#settle())
    socket.setTimeout(limits.idleMs)
    socket.on('timeout', () => this.#giveUp())
    socket.on('data', (chunk) => this.#read(chunk))
    socket.on('error', (error) => {
      this.#failure ??= errorCode(error)
    })
    socket.on('close', () => {
      clearTimeout(this.#patience)
      const failure = this.#established ? undefined : (this.#failure ?? 'closed')
      onClosed(failure)
      for (const { reference } of this.#takeWaiting())
        callbacks.sendFailed(reference, failure ?? 'closed')
      if (failure === undefined) callbacks.connectionClosed(flow)
    })
  }

  /** Never throws; a message that cannot be written comes back as `sendFailed`. */
  send(text: string, reference: string): void {
    // A peer such as ours would end the connection, and with it all else that is under way on it.
    if (text.length * 3 > maxMessageBytes && byteLength(text) > maxMessageBytes)
      return void setImmediate(this.#callbacks.sendFailed, reference, 'the message is too large')
    const buffered = this.socket.writableLength + this.#waitingBytes
    if (buffered + text.length > this.#limits.maxBufferedBytes) {
      setImmediate(this.#callbacks.sendFailed, reference, 'the peer does not read')
      return
    }
    if (this.#established) return this.#write(text, reference)
    // Not given to the socket: a peer that has not proved its name must not get it, and the socket
    // would take it as sent.
    this.#waiting.push({ text, reference })
    this.#waitingBytes += text.length
  }

  /** Closes after the data that was written, but does not wait for a peer that reads nothing. */
  close(): void {
    if (this.#established) this.socket.destroySoon()
    else this.socket.destroy()
  }

  destroy(): void {
    this.socket.destroy()
  }

  #write(text: string, reference: string): void {
    this.socket.write(encodeMessage(text), (error) => {
      if (error) this.#callbacks.sendFailed(reference, this.#failure ?? errorCode(error))
    })
  }

  #settle(): void {
    clearTimeout(this.#patience)
    this.#patience = undefined
    if (this.#established) return
    this.#established = true
    for (const { text, reference } of this.#takeWaiting()) this.#write(text, reference)
  }

  #takeWaiting() {
    this.#waitingBytes = 0
    return this.#waiting.splice(0)
  }

  #allow(delayMs: number): void {
    this.#patience = setTimeout(() => this.#giveUp(), delayMs)
  }

  #giveUp(): void {
    this.#failure ??= this.#established ? 'idle' : 'ETIMEDOUT'
    this.socket.destroy()
  }

  #read(chunk: Buffer): void {
    for (const frame of this.#framer.receive(chunk)) this.#take(frame)
    if (this.#framer.isIncomplete && !this.#patience) this.#allow(this.#limits.messageMs)
  }

  #pong(): void {
    if (this.#waitingPongs >= maxWaitingPongs) return
    this.#waitingPongs += 1
    this.socket.write('\r\n', () => {
      this.#waitingPongs -= 1
    })
  }

  #take(frame: Frame): void {
    if (frame.kind === 'ping') return this.#pong()
    if (this.#patience) this.#settle()
    if (frame.kind === 'message') return this.#callbacks.message(frame.text, this.flow)
    // A header part that can be read is answered (400, 413) before the end.
    if (frame.head !== '') this.#callbacks.message(frame.head, this.flow)
    this.#failure ??= frame.reason
    this.close()
  }
}
