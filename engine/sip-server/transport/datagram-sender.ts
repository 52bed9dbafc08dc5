/** Datagrams to one place that nothing waits for: those that cannot be sent are lost. */
import { createSocket, type Socket } from 'node:dgram'
import { isIPv6 } from 'node:net'

/** What may wait in the socket; beyond, datagrams are lost. */
const maxWaitingBytes = 4 * 1024 * 1024

/** What may wait for the look-up of the place, such as the first lines of a log. */
const maxEarly = 256

export class DatagramSender {
  readonly #socket: Socket
  /** Undefined: what is sent goes out at once. */
  #early: Uint8Array[] | undefined = []
  #isStopped = false

  constructor(host: string, port: number) {
    this.#socket = createSocket(isIPv6(host) ? 'udp6' : 'udp4').unref()
    // A name that is not found, or a place where nothing listens.
    this.#socket.on('error', () => undefined)
    this.#socket.connect(port, host, (error?: Error) => {
      if (error !== undefined) return
      const early = this.#early ?? []
      this.#early = undefined
      for (const bytes of early) this.send(bytes)
    })
  }

  /** After the end, too, where nothing is sent. */
  send(bytes: Uint8Array): void {
    if (this.#isStopped) return
    if (this.#early !== undefined) {
      if (this.#early.length < maxEarly) this.#early.push(bytes)
    } else if (this.#socket.getSendQueueSize() <= maxWaitingBytes)
      this.#socket.send(bytes, () => undefined)
  }

  stop(): void {
    if (this.#isStopped) return
    this.#isStopped = true
    this.#socket.close()
  }
}
