/** The open stream connections of one listener, to be found by id and by remote address. */
import type { Connection } from './connection.ts'

export class Connections {
  readonly #byId = new Map<number, Connection>()
  /** The newest connection to each remote address and port. */
  readonly #byRemote = new Map<string, Connection>()

  get size(): number {
    return this.#byId.size
  }

  add(connection: Connection): void {
    const { flow } = connection
    this.#byId.set(flow.connectionId, connection)
    this.#byRemote.set(remoteKey(flow.address, flow.port), connection)
  }

  remove(connection: Connection): void {
    const { flow } = connection
    this.#byId.delete(flow.connectionId)
    const remote = remoteKey(flow.address, flow.port)
    if (this.#byRemote.get(remote) === connection) this.#byRemote.delete(remote)
  }

  byId(connectionId: number): Connection | undefined {
    return this.#byId.get(connectionId)
  }

  /** Reuse of a connection, whoever opened it (RFC 3261 §18.1.1, §18.2.2). */
  byRemote(address: string, port: number): Connection | undefined {
    return this.#byRemote.get(remoteKey(address, port))
  }

  all(): Iterable<Connection> {
    return this.#byId.values()
  }
}

const remoteKey = (address: string, port: number): string => `${address}|${port}`
