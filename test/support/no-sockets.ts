/**
 * Setup of the suites that run in memory: whatever opens a socket fails with the name of what it
 * did.
 */
import { Socket as Datagrams } from 'node:dgram'
import { Server, Socket } from 'node:net'

const refuse = (what: string) => (): never => {
  throw new Error(`${what}: this suite opens no socket; test/sockets/ may`)
}

// HTTP, TLS and WebSockets stand on these.
Object.assign(Datagrams.prototype, {
  bind: refuse('dgram bind'),
  connect: refuse('dgram connect'),
  send: refuse('dgram send'),
})
Object.assign(Server.prototype, { listen: refuse('net listen') })
Object.assign(Socket.prototype, { connect: refuse('net connect') })
