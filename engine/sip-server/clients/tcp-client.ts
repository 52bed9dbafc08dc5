/** An application connected by TCP: frames in, frames out. */
import type { Socket } from 'node:net'
import { encodeNok } from '../wire/event.ts'
import { encodeFrame, FrameReader, maxFrameBytes } from '../wire/frame.ts'
import type { Client } from './client.ts'

/** A connection that has not sent one whole frame by then is no drachtio application. Milliseconds. */
const firstFrameTimeoutMs = 10_000

/** How long a peer may take to close its side after we closed ours. Milliseconds. */
const closeTimeoutMs = 5_000

export interface TcpClientOptions {
  /** Bytes that may wait for an application that does not read; beyond, it is dropped. */
  readonly maxBufferedBytes: number
  readonly onPayload: (payload: string) => void
  /** Called once, when the connection is gone for whatever reason. */
  readonly onClosed: () => void
  /** The connection is dropped, and why. */
  readonly onDropped: (reason: string) => void
}

export class TcpClient implements Client {
  readonly isInProcess = false
  readonly #socket: Socket
  readonly #options: TcpClientOptions
  readonly #frames = new FrameReader()
  #framed = false

  constructor(socket: Socket, options: TcpClientOptions) {
    this.#socket = socket
    this.#options = options
    socket.setNoDelay(true)
    socket.setKeepAlive(true, 45_000)
    socket.setTimeout(firstFrameTimeoutMs, () => this.#drop('no frame or no close in time'))
    socket.on('data', (chunk) => this.#read(chunk))
    // Every error is followed by `close`, which is where the connection ends.
    socket.on('error', (error) => this.#options.onDropped(error.message))
    socket.on('close', () => this.#options.onClosed())
  }

  deliver(payload: string): void {
    if (!this.#socket.writable) return
    this.#socket.write(encodeFrame(payload))
    if (this.#socket.writableLength > this.#options.maxBufferedBytes) this.#drop('it does not read')
  }

  close(): void {
    if (this.#socket.destroyed) return
    this.#socket.setTimeout(closeTimeoutMs)
    this.#socket.end()
  }

  destroy(): void {
    this.#socket.destroy()
  }

  #read(chunk: Buffer): void {
    const { payloads, tooLong, problem } = this.#frames.push(chunk)
    if (!this.#framed && payloads.length > 0) {
      this.#framed = true
      this.#socket.setTimeout(0)
    }
    for (const payload of payloads) this.#options.onPayload(payload)
    for (const start of tooLong) {
      const [id = ''] = start.split('|', 1)
      this.deliver(encodeNok('limit', id, `a message of more than ${maxFrameBytes} bytes`))
    }
    if (problem !== undefined) this.#drop(problem)
  }

  #drop(reason: string): void {
    if (this.#socket.destroyed) return
    this.#options.onDropped(reason)
    this.#socket.destroy()
  }
}
