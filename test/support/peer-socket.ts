/** The raw sockets of a scripted SIP peer: datagrams, or streams cut into messages. */
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'
import {
  connect as connectTls,
  createServer as createTlsServer,
  type ConnectionOptions,
  type TlsOptions,
} from 'node:tls'
import type { Listener } from '../../engine/sip-server/index.ts'
import { patienceMs } from './waiting.ts'

/** One whole message, and the way back to where it came from. */
type Receive = (text: string, answer: (text: string) => void) => void

export interface PeerSocket {
  readonly host: string
  readonly port: number
  /** Sends to the listener; by TCP or TLS on a connection of the peer's own. */
  send(text: string): void
  /** Ends all connections; the port stays open. Nothing for UDP. */
  hangUp(): void
  close(): void
}

/** Where peers live. */
export interface PeerNetwork {
  open(listener: Listener, receive: Receive, options: PeerOptions): Promise<PeerSocket>
  /**
   * Calls `giveUp` when what is waited for does not come any more; the returned function cancels.
   */
  whenSilent(giveUp: () => void): () => void
}

/** The certificate and the trusted CAs of a TLS peer. */
export type PeerTls = ConnectionOptions & TlsOptions

export interface PeerOptions {
  readonly tls?: PeerTls | undefined
  /** Default: whichever is free. */
  readonly port?: number | undefined
}

/** Bound to the same address as the listener. */
const openPeerSocket = (
  listener: Listener,
  receive: Receive,
  options: PeerOptions,
): Promise<PeerSocket> =>
  listener.protocol === 'udp'
    ? openUdp(listener, receive, options)
    : openStream(listener, receive, options)

/** Real sockets. */
export const machineNetwork: PeerNetwork = {
  open: openPeerSocket,
  whenSilent: (giveUp) => {
    const timer = setTimeout(giveUp, patienceMs)
    return () => clearTimeout(timer)
  },
}

async function openUdp(
  listener: Listener,
  receive: Receive,
  { port = 0 }: PeerOptions,
): Promise<PeerSocket> {
  const host = listener.advertisedHost
  const socket = createSocket(host.includes(':') ? 'udp6' : 'udp4')
  socket.on('message', (bytes, { port, address }) =>
    receive(String(bytes), (text) => socket.send(text, port, address)),
  )
  socket.bind(port, host)
  await once(socket, 'listening')
  return {
    host,
    port: socket.address().port,
    // The address is another one than the server's, if the test says so; a server on all addresses
    // has ours too.
    send: (text) =>
      socket.send(text, listener.port, isAny(listener.address) ? host : listener.address),
    hangUp: () => undefined,
    close: () => socket.close(),
  }
}

const isAny = (address: string): boolean => address === '0.0.0.0' || address === '::'

async function openStream(
  listener: Listener,
  receive: Receive,
  { tls, port = 0 }: PeerOptions,
): Promise<PeerSocket> {
  const host = listener.advertisedHost
  const sockets = new Set<Socket>()
  let dialled: Socket | undefined
  const adopt = (socket: Socket): Socket => {
    let buffered = ''
    sockets.add(socket)
    socket.setNoDelay(true)
    socket.on('error', () => undefined)
    socket.on('close', () => {
      sockets.delete(socket)
      if (dialled === socket) dialled = undefined
    })
    socket.on('data', (bytes) => {
      // One character for each byte, so that lengths are those of the stream.
      buffered += bytes.toString('latin1')
      for (let text = firstMessage(buffered); text !== ''; text = firstMessage(buffered)) {
        buffered = buffered.slice(text.length)
        receive(Buffer.from(text, 'latin1').toString(), (answer) => socket.write(answer))
      }
    })
    return socket
  }
  const hangUp = (): void => {
    for (const socket of sockets) socket.destroy()
  }
  const server: Server = tls ? createTlsServer(tls, adopt) : createServer(adopt)
  server.listen(port, host)
  await once(server, 'listening')
  const bound = server.address()
  return {
    host,
    port: bound !== null && typeof bound === 'object' ? bound.port : 0,
    send: (text) => {
      dialled ??= adopt(
        tls ? connectTls({ ...tls, host, port: listener.port }) : connect(listener.port, host),
      )
      dialled.write(text)
    },
    hangUp,
    close: () => {
      server.close()
      hangUp()
    },
  }
}

/** The first whole message of a stream; empty while there is none. */
function firstMessage(buffered: string): string {
  const end = buffered.indexOf('\r\n\r\n')
  if (end === -1) return ''
  const length = /\r\ncontent-length: *(\d+)/i.exec(buffered.slice(0, end))?.[1] ?? '0'
  const size = end + 4 + Number(length)
  return buffered.length >= size ? buffered.slice(0, size) : ''
}
