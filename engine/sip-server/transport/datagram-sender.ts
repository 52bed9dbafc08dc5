/** Datagrams to one place that nothing waits for: those that cannot be sent are lost. */
import { createSocket, type Socket } from 'node:dgram'
import { isIPv6 } from 'node:net'

/** What may wait in the socket; beyond, datagrams are lost. */
const maxWaitingBytes = 4 * 1024 * 1024

export class DatagramSender {
  readonly #socket: Socket
  #isConnected = false

  constructor(host: string, port: number) {
    this.#socket = createSocket(isIPv6(host) ? 'udp6' : 'udp4').unref()
    // A name that is not found, or a place where nothing listens.
    this.#socket.on('error', () => undefined)
    this.#socket.connect(port, host, (error?: Error) => (this.#isConnected = error === undefined))
  }

  send(bytes: Uint8Array): void {
    if (!this.#isConnected || this.#socket.getSendQueueSize() > maxWaitingBytes) return
    this.#socket.send(bytes, () => undefined)
  }

  stop(): void {
    this.#socket.close()
  }
}
