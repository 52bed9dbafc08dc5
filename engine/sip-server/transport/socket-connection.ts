/** One WebSocket: a frame is a message (RFC 7118 §5), so nothing has to be cut. */
import type { Socket } from 'node:net'
import type { RawData, WebSocket } from 'ws'
import { errorCode } from '../errors.ts'
import type { Flow } from '../flow.ts'
import { decodeMessage, encodeMessage, hasEscapedBytes } from '../../../schema/sip/message.ts'
import { maxWaitingPongs, type StreamLimits } from './sources.ts'
import type { TransportCallbacks } from './transport.ts'

export interface SocketConnectionOptions {
  readonly webSocket: WebSocket
  /** The socket below the WebSocket. */
  readonly socket: Socket
  readonly flow: Flow
  readonly limits: StreamLimits
  readonly callbacks: TransportCallbacks
  readonly onClosed: () => void
}

/** RFC 6455 §7.4.1. */
const closeCodes = { normal: 1000, policy: 1008 } as const

export class SocketConnection {
  readonly flow: Flow
  readonly #webSocket: WebSocket
  readonly #socket: Socket
  readonly #limits: StreamLimits
  readonly #callbacks: TransportCallbacks
  /** Until the first message. */
  #patience: NodeJS.Timeout | undefined
  #awaitsPong = false
  /** Pings in a row without any message of the peer between them. */
  #silentPings = 0
  #waitingPongs = 0

  constructor(options: SocketConnectionOptions) {
    const { webSocket, socket, flow, limits, callbacks, onClosed } = options
    this.flow = flow
    this.#webSocket = webSocket
    this.#socket = socket
    this.#limits = limits
    this.#callbacks = callbacks
    this.#patience = setTimeout(() => webSocket.terminate(), limits.messageMs)
    socket.setTimeout(limits.keepAliveMs)
    socket.on('timeout', () => this.#ping())
    webSocket.on('pong', () => {
      this.#awaitsPong = false
    })
    webSocket.on('ping', (data) =>
      this.#answerPing((written) => webSocket.pong(data, false, written)),
    )
    webSocket.on('message', (data) => this.#read(data))
    // A broken frame, or one that is too large: the library closes with the code for it.
    webSocket.on('error', () => undefined)
    webSocket.on('close', () => {
      clearTimeout(this.#patience)
      onClosed()
      callbacks.connectionClosed(flow)
    })
  }

  /** Never throws; a message that cannot be written comes back as `sendFailed`. */
  send(text: string, reference: string): void {
    const { sendFailed } = this.#callbacks
    if (this.#webSocket.bufferedAmount + text.length > this.#limits.maxBufferedBytes) {
      setImmediate(sendFailed, reference, 'the peer does not read')
      return
    }
    // RFC 6455 §5.6: a text frame is UTF-8.
    const binary = hasEscapedBytes(text)
    this.#webSocket.send(encodeMessage(text), { binary }, (error) => {
      if (error) sendFailed(reference, errorCode(error))
    })
  }

  /** Says goodbye, and does not wait for the peer's. */
  close(): void {
    this.#webSocket.close(closeCodes.normal)
    this.#socket.destroySoon()
  }

  destroy(): void {
    this.#webSocket.terminate()
  }

  /** Pings after a silence: a peer that answers lives, and a NAT between keeps its mapping. */
  #ping(): void {
    this.#silentPings += 1
    if (this.#awaitsPong) return this.#webSocket.terminate()
    if (this.#silentPings * this.#limits.keepAliveMs > this.#limits.idleMs) {
      this.#webSocket.close(closeCodes.policy, 'idle')
      this.#socket.destroySoon()
      return
    }
    this.#awaitsPong = true
    this.#webSocket.ping()
  }

  /** The library would answer each one, however many wait already. */
  #answerPing(answer: (written: () => void) => void): void {
    if (this.#waitingPongs >= maxWaitingPongs) return
    this.#waitingPongs += 1
    answer(() => {
      this.#waitingPongs -= 1
    })
  }

  #read(data: RawData): void {
    this.#awaitsPong = false
    const bytes = Buffer.isBuffer(data) ? data : Buffer.concat(Array.isArray(data) ? data : [])
    const keepAlive = lineBreaksOf(bytes)
    if (keepAlive !== undefined) {
      // RFC 5626 §4.4.1, which RFC 7118 §6 keeps for WebSockets.
      if (keepAlive === '\r\n\r\n')
        this.#answerPing((written) => this.#webSocket.send('\r\n', written))
      return
    }
    this.#silentPings = 0
    clearTimeout(this.#patience)
    this.#patience = undefined
    this.#callbacks.message(decodeMessage(bytes), this.flow)
  }
}

/** The frame as text when there is nothing but line breaks in it. */
function lineBreaksOf(bytes: Buffer): string | undefined {
  if (bytes.length > 4) return undefined
  const text = bytes.toString('latin1')
  return /^[\r\n]*$/.test(text) ? text : undefined
}
