import type { Flow } from '../flow.ts'
import type { StreamConnection } from './stream-connection.ts'

/** The open stream connections of one listener, to be found by id and by remote address. */
export class Connections {
  readonly #byId = new Map<number, StreamConnection>()
  /** The newest connection to each remote address and port, under the name it was opened for. */
  readonly #byRemote = new Map<string, StreamConnection>()
  /** Accepted connections by the address that their peer listens on (RFC 5923), and back. */
  readonly #byAlias = new Map<string, StreamConnection>()
  readonly #aliases = new Map<StreamConnection, string>()

  get size(): number {
    return this.#byId.size
  }

  add(connection: StreamConnection): void {
    const { flow } = connection
    this.#byId.set(flow.connectionId, connection)
    this.#byRemote.set(keyOf(flow), connection)
  }

  remove(connection: StreamConnection): void {
    const { flow } = connection
    this.#byId.delete(flow.connectionId)
    forget(this.#byRemote, keyOf(flow), connection)
    const alias = this.#aliases.get(connection)
    if (alias === undefined) return
    this.#aliases.delete(connection)
    forget(this.#byAlias, alias, connection)
  }

  byId(connectionId: number): StreamConnection | undefined {
    return this.#byId.get(connectionId)
  }

  /**
   * Reuse of a connection, opened by either side (RFC 3261 §18.1.1, §18.2.2). With a name only one
   * that was opened for the same name; without it, one that was accepted or opened without.
   */
  byRemote(address: string, port: number, hostName?: string): StreamConnection | undefined {
    return this.#byRemote.get(remoteKey(address, port, hostName))
  }

  /** The connection may be used only once its peer has proved the name that is looked for. */
  byAlias(address: string, port: number): StreamConnection | undefined {
    return this.#byAlias.get(remoteKey(address, port))
  }

  addAlias(connection: StreamConnection, port: number): void {
    const key = remoteKey(connection.flow.address, port)
    this.#aliases.set(connection, key)
    this.#byAlias.set(key, connection)
  }

  all(): Iterable<StreamConnection> {
    return this.#byId.values()
  }
}

function forget(
  map: Map<string, StreamConnection>,
  key: string,
  connection: StreamConnection,
): void {
  if (map.get(key) === connection) map.delete(key)
}

const remoteKey = (address: string, port: number, hostName = ''): string =>
  `${address}|${port}|${hostName}`

const keyOf = ({ address, port, hostName }: Flow): string => remoteKey(address, port, hostName)
