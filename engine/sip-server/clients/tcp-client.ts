/** An application connected by TCP: frames in, frames out. */
import type { Socket } from 'node:net'
import { type FrameLength, encodeFrame, FrameReader, maxFrameBytes } from '../wire/frame.ts'
import type { Client } from './client.ts'
import type { AppCommand, AppEvent } from '../application.ts'
import { decodeCommand } from '../wire/command.ts'
import { encodeEvent } from '../wire/event.ts'

/** Milliseconds. */
const defaultFirstFrameMs = 10_000

/** Milliseconds. */
const defaultKeepAliveMs = 45_000

/** An application that takes nothing for so long is no use to its callers either. Milliseconds. */
const defaultUnreadMs = 10_000

/** How long a peer may take to close its side after we closed ours. Milliseconds. */
const closeTimeoutMs = 5_000

interface TcpClientOptions {
  /** Bytes that may wait for an application that does not read; beyond, it is dropped. */
  readonly maxBufferedBytes: number
  /** TCP keep-alive; 0: none. Default: 45 s. */
  readonly keepAliveMs?: number | undefined
  /** A connection that has not sent one whole frame by then is no application. Default: 10 s. */
  readonly firstFrameMs?: number | undefined
  /**
   * A connection is dropped that reads nothing for so long while data waits for it. Default: 10 s.
   */
  readonly unreadMs?: number | undefined
  /** The unit of frame lengths that the application expects. Default: bytes. */
  readonly frameLength?: FrameLength | undefined
  /** The first whole frame is there. */
  readonly onFramed?: () => void
  readonly onCommand: (command: AppCommand) => void
  /** Called once, when the connection is gone for whatever reason. */
  readonly onClosed: () => void
  /** The connection is dropped for this reason. */
  readonly onDropped: (reason: string) => void
}

export class TcpClient implements Client {
  readonly isInProcess = false
  readonly #socket: Socket
  readonly #options: TcpClientOptions
  readonly #frames = new FrameReader()
  #events = 0
  /** Until the first frame. */
  #patience: NodeJS.Timeout | undefined
  /** While something waits that the application does not read. */
  #unread: NodeJS.Timeout | undefined

  constructor(socket: Socket, options: TcpClientOptions) {
    this.#socket = socket
    this.#options = options
    socket.setNoDelay(true)
    const { firstFrameMs = defaultFirstFrameMs, keepAliveMs = defaultKeepAliveMs } = options
    socket.setKeepAlive(keepAliveMs > 0, keepAliveMs)
    this.#patience = setTimeout(() => this.#drop('no frame in time'), firstFrameMs)
    socket.on('data', (chunk) => this.#read(chunk))
    // Every error is followed by `close`, which is where the connection ends.
    socket.on('error', (error) => this.#options.onDropped(error.message))
    socket.on('drain', () => this.#stopWaiting())
    socket.on('close', () => {
      clearTimeout(this.#patience)
      this.#stopWaiting()
      this.#options.onClosed()
    })
  }

  deliver(event: AppEvent): void {
    if (!this.#socket.writable) return
    this.#events += 1
    const payload = encodeEvent(event, this.#events.toString(36))
    const frame = encodeFrame(payload, this.#options.frameLength)
    // A slow reader gets its full time again with each frame that it has read.
    if (this.#socket.writableNeedDrain) this.#socket.write(frame, () => this.#unread?.refresh())
    else if (!this.#socket.write(frame)) this.#waitForReader()
    if (this.#socket.writableLength > this.#options.maxBufferedBytes) this.#drop('it does not read')
  }

  #waitForReader(): void {
    const { unreadMs = defaultUnreadMs } = this.#options
    this.#unread ??= setTimeout(() => this.#drop('it does not read'), unreadMs)
  }

  #stopWaiting(): void {
    clearTimeout(this.#unread)
    this.#unread = undefined
  }

  close(): void {
    if (this.#socket.destroyed) return
    this.#socket.setTimeout(closeTimeoutMs, () => this.#drop('no close in time'))
    this.#socket.end()
  }

  destroy(): void {
    this.#socket.destroy()
  }

  #read(chunk: Buffer): void {
    const { payloads, tooLong, problem } = this.#frames.push(chunk)
    if (this.#patience && payloads.length > 0) {
      clearTimeout(this.#patience)
      this.#patience = undefined
      this.#options.onFramed?.()
    }
    for (const payload of payloads) this.#options.onCommand(decodeCommand(payload))
    for (const start of tooLong) {
      const [id = ''] = start.split('|', 1)
      const problem = `a message of more than ${maxFrameBytes} bytes`
      this.deliver({ kind: 'refused', commandId: id, problem })
    }
    if (problem !== undefined) this.#drop(problem)
  }

  #drop(reason: string): void {
    if (this.#socket.destroyed) return
    this.#options.onDropped(reason)
    this.#socket.destroy()
  }
}
