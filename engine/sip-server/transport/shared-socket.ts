/** A bound socket that another process may have, too: for a planned upgrade. */
import type { Socket } from 'node:dgram'
import type { Server } from 'node:net'

export interface SharedSocket {
  /**
   * A process that is started with this file descriptor has the same socket.
   * @throws {TypeError} it listens no more, or this Node.js keeps it elsewhere.
   */
  readonly descriptor: number
  /** Reads nothing and accepts no connection any more. What is sent, and the connections there are, go on. */
  leave(): void
  /** Closes the connections that have none of these ids. */
  closeAllBut(connectionIds: ReadonlySet<number>): void
}

/** What Node.js has under a socket, as far as it is used here: it documents neither. */
interface Handle {
  readonly fd: number
  recvStop?(): void
}

export function sharedDatagrams(socket: Socket): SharedSocket {
  return {
    get descriptor() {
      return handleOf(socket).fd
    },
    leave: () => handleOf(socket).recvStop?.(),
    closeAllBut: () => undefined,
  }
}

export const sharedServer = (
  server: Server,
  closeAllBut: SharedSocket['closeAllBut'],
): SharedSocket => ({
  get descriptor() {
    return descriptorOf(server)
  },
  // Its part of the socket is closed at once, the server itself with its last connection.
  leave: () => void server.close(),
  closeAllBut,
})

function descriptorOf(server: Server): number {
  const { _handle: handle } = server as Server & { readonly _handle?: Handle | null }
  if (!handle || handle.fd < 0) throw new TypeError('the socket has no descriptor')
  return handle.fd
}

function handleOf(socket: Socket): Handle {
  const state = Object.getOwnPropertySymbols(socket).find(
    ({ description }) => description === 'state symbol',
  )
  const { handle } = (state && (Reflect.get(socket, state) as { handle?: Handle })) ?? {}
  if (handle === undefined || handle.fd < 0) throw new TypeError('the socket has no descriptor')
  return handle
}
