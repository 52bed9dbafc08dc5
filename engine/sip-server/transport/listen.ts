/** Binding and releasing a TCP server, as promises. */
import type { Server } from 'node:net'
import { ListenError } from '../errors.ts'

export interface BoundAddress {
  readonly host: string
  readonly port: number
}

/** An address to listen on. */
export interface BindAddress extends BoundAddress {
  /** A socket that is bound there already. */
  readonly descriptor?: number | undefined
  readonly localNets?: readonly string[] | undefined
  readonly names?: readonly string[] | undefined
}

/** When a server stops, written data gets this long to leave. Milliseconds. */
const flushMs = 500

/**
 * @param descriptor the socket, if it is bound already
 * @throws ListenError when the address cannot be bound.
 */
export function listen(
  server: Server,
  what: string,
  { host, port, descriptor }: BindAddress,
): Promise<BoundAddress> {
  return new Promise((resolve, reject) => {
    const refused = (error: Error) => reject(new ListenError(what, host, port, error))
    server.once('error', refused)
    const place = descriptor === undefined ? { host, port, ipv6Only: true } : { fd: descriptor }
    server.listen({ ...place, backlog: 511 }, () => {
      server.off('error', refused)
      // Later errors are failed accepts, for want of file descriptors: the peer tries again.
      server.on('error', () => undefined)
      const bound = server.address()
      if (bound === null || typeof bound === 'string')
        return reject(new ListenError(what, host, port, 'no address'))
      resolve({ host: bound.address, port: bound.port })
    })
  })
}

interface Closable {
  /** Closes after what was written. */
  close(): void
  destroy(): void
}

/**
 * Resolves when the server and all its connections are closed. `abandon` ends what is not a
 * connection yet: a handshake under way.
 */
export function stopListening(
  server: Server,
  connections: Iterable<Closable>,
  abandon: () => void = () => undefined,
): Promise<void> {
  const open = [...connections]
  for (const connection of open) connection.close()
  const impatience = setTimeout(() => {
    for (const connection of open) connection.destroy()
    abandon()
  }, flushMs)
  return new Promise((resolve) => {
    server.close(() => {
      clearTimeout(impatience)
      resolve()
    })
  })
}
