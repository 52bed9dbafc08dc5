import type { AppCommand, AppEvent } from '../application.ts'
import type { Client } from './client.ts'

interface ClientCallbacks {
  readonly connected: (clientId: number, isInProcess: boolean) => void
  readonly command: (clientId: number, command: AppCommand) => void
  /** An application of this process has seen a new INVITE. */
  readonly handled?: (clientId: number, transactionId: string) => void
  readonly disconnected: (clientId: number) => void
}

/** The table of connected applications. Ids are never used twice. */
export class Clients {
  readonly #callbacks: ClientCallbacks
  readonly #byId = new Map<number, Client>()
  #lastId = 0

  constructor(callbacks: ClientCallbacks) {
    this.#callbacks = callbacks
  }

  get size(): number {
    return this.#byId.size
  }

  /**
   * @param clientId the id that the core has chosen for an application that this server has
   * connected to
   */
  add(client: Client, clientId = ++this.#lastId): number {
    this.#byId.set(clientId, client)
    this.#callbacks.connected(clientId, client.isInProcess)
    return clientId
  }

  /** The dialer could not reach the application. */
  neverCame(clientId: number): void {
    this.#callbacks.disconnected(clientId)
  }

  /** A command of a client; ignored once the client is gone. */
  receive(clientId: number, command: AppCommand): void {
    if (this.#byId.has(clientId)) this.#callbacks.command(clientId, command)
  }

  handled(clientId: number, transactionId: string): void {
    this.#callbacks.handled?.(clientId, transactionId)
  }

  /** The connection has ended. Safe to repeat. */
  remove(clientId: number): void {
    if (this.#byId.delete(clientId)) this.#callbacks.disconnected(clientId)
  }

  deliver(clientId: number, event: AppEvent): void {
    this.#byId.get(clientId)?.deliver(event)
  }

  /** Nothing that the client still sends is read. */
  disconnect(clientId: number): void {
    const client = this.#byId.get(clientId)
    this.remove(clientId)
    client?.close()
  }

  disconnectAll(): void {
    for (const clientId of this.#byId.keys()) this.disconnect(clientId)
  }
}
