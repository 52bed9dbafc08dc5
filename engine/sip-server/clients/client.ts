/** Connected applications, whatever they are connected by. */

/** One application's connection, as seen from the server. */
export interface Client {
  /** Without a socket in between. */
  readonly isInProcess: boolean
  /** Hands over one wire payload; payloads arrive in this order. */
  deliver(payload: string): void
  /** Ends the connection after what was delivered before. */
  close(): void
}

export interface ClientCallbacks {
  readonly connected: (clientId: number, isInProcess: boolean) => void
  /** One wire payload from the application. */
  readonly payload: (clientId: number, payload: string) => void
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

  add(client: Client): number {
    const clientId = ++this.#lastId
    this.#byId.set(clientId, client)
    this.#callbacks.connected(clientId, client.isInProcess)
    return clientId
  }

  /** An application that was connected to under an id that the core has chosen. */
  adopt(clientId: number, client: Client): void {
    this.#byId.set(clientId, client)
    this.#callbacks.connected(clientId, client.isInProcess)
  }

  /** It could not be connected to. */
  neverCame(clientId: number): void {
    this.#callbacks.disconnected(clientId)
  }

  /** A payload from a client; ignored once the client is gone. */
  receive(clientId: number, payload: string): void {
    if (this.#byId.has(clientId)) this.#callbacks.payload(clientId, payload)
  }

  /** The connection has ended. Safe to repeat. */
  remove(clientId: number): void {
    if (this.#byId.delete(clientId)) this.#callbacks.disconnected(clientId)
  }

  deliver(clientId: number, payload: string): void {
    this.#byId.get(clientId)?.deliver(payload)
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
