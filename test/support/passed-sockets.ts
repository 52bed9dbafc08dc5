/**
 * Sockets as systemd passes them to a service: bound and listening, and nobody reads them but the
 * program that is started with them. Node.js reads what it binds, so a process of its own binds
 * them, and hands them over unread.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'

interface Place {
  readonly protocol: 'udp' | 'tcp'
  readonly port: number
}

/** The handle that Node.js has under a socket. */
interface Handle {
  readonly fd: number
  close(): void
}

export class PassedSockets {
  readonly #handles: readonly Handle[]

  private constructor(handles: readonly Handle[]) {
    this.#handles = handles
  }

  static async bind(places: readonly Place[]): Promise<PassedSockets> {
    return new PassedSockets(await Promise.all(places.map(bind)))
  }

  /** Descriptors for the standard streams of a process, behind the first three. */
  get descriptors(): readonly number[] {
    return this.#handles.map(({ fd }) => fd)
  }

  close(): void {
    for (const handle of this.#handles) handle.close()
  }
}

const scripts = {
  tcp: (port: number) =>
    `const server = require('net').createServer()
    server.listen(${port}, '127.0.0.1', () => process.send('', server._handle, () => process.exit()))`,
  udp: (port: number) =>
    `const socket = require('dgram').createSocket({ type: 'udp4', recvBufferSize: 4194304 })
    const state = Object.getOwnPropertySymbols(socket).find((symbol) => symbol.description === 'state symbol')
    socket.bind(${port}, '127.0.0.1', () => process.send('', socket[state].handle, () => process.exit()))`,
}

async function bind({ protocol, port }: Place): Promise<Handle> {
  const child = spawn(process.execPath, ['-e', scripts[protocol](port)], {
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  })
  const [, handle] = (await once(child, 'message')) as [string, Handle]
  return handle
}
