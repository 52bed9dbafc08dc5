/** SIP over UDP (RFC 3261 §18): one datagram, one message. */
import { createSocket, type Socket } from 'node:dgram'
import { isIPv6 } from 'node:net'
import { errorCode, ListenError } from '../errors.ts'
import type { Flow, Listener } from '../flow.ts'
import { encodeMessage } from '../../../schema/sip/message.ts'
import type { BindAddress } from './listen.ts'
import { boundListener, type Transport, type TransportCallbacks } from './transport.ts'
import { PeerFlows } from './peer-flows.ts'

/**
 * A burst of calls must fit between two turns of the event loop. The kernel grants what
 * `net.core.rmem_max` allows, without an error.
 */
const socketBufferBytes = 4 * 1024 * 1024

/** @throws ListenError when the address cannot be bound. */
export function openUdp(
  { host, port, descriptor, ...appearance }: BindAddress,
  advertisedHost: string | undefined,
  callbacks: TransportCallbacks,
): Promise<UdpTransport> {
  const family = isIPv6(host) ? 6 : 4
  const socket = createSocket({
    type: family === 6 ? 'udp6' : 'udp4',
    ipv6Only: family === 6,
    recvBufferSize: socketBufferBytes,
    sendBufferSize: socketBufferBytes,
    // Destinations are literals; the default would go through dns.lookup for each datagram.
    lookup: (hostname, _options, found) => found(null, hostname, family),
  })
  return new Promise((resolve, reject) => {
    const refused = (error: Error) => {
      socket.close()
      reject(new ListenError('udp', host, port, error))
    }
    socket.once('error', refused)
    const place = descriptor === undefined ? { address: host, port } : { fd: descriptor }
    socket.bind({ ...place, exclusive: true }, () => {
      socket.off('error', refused)
      const listener = boundListener('udp', socket.address(), advertisedHost, appearance)
      resolve(new UdpTransport(socket, listener, callbacks))
    })
  })
}

class UdpTransport implements Transport {
  readonly listener: Listener
  readonly connections = 0
  readonly #socket: Socket
  readonly #callbacks: TransportCallbacks

  constructor(socket: Socket, listener: Listener, callbacks: TransportCallbacks) {
    this.listener = listener
    this.#socket = socket
    this.#callbacks = callbacks
    const flows = new PeerFlows(listener)
    socket.on('message', (bytes, remote) => {
      if (!isKeepAlive(bytes)) callbacks.datagram(bytes, flows.of(remote.address, remote.port))
    })
    // Failed sends report to their callback. What is left here concerns no message: an ICMP error
    // for an earlier datagram, on systems that report it to unconnected sockets.
    socket.on('error', () => undefined)
  }

  send(text: string, flow: Flow, reference: string): void {
    // Each callback is a tick of its own: for the four messages of a call that need none that took
    // 2 %.
    const done =
      reference === ''
        ? undefined
        : (error: Error | null) => {
            if (error !== null) this.#callbacks.sendFailed(reference, errorCode(error))
          }
    try {
      this.#socket.send(encodeMessage(text), flow.port, flow.address, done)
    } catch (error) {
      // A port out of range, or a socket that is already closed.
      setImmediate(this.#callbacks.sendFailed, reference, errorCode(error))
    }
  }

  close(): void {
    // There is no connection to close.
  }

  isConnected(): boolean {
    return false
  }

  stopReading(): void {
    handleOf(this.#socket)?.recvStop()
  }

  stop(): Promise<void> {
    return new Promise((resolve) => {
      this.#socket.close(() => resolve())
    })
  }
}

/** The undocumented handle of Node.js under a socket, as far as it is used here. */
interface Handle {
  recvStop(): void
}

function handleOf(socket: Socket): Handle | undefined {
  const state = Object.getOwnPropertySymbols(socket).find(
    ({ description }) => description === 'state symbol',
  )
  return state && (Reflect.get(socket, state) as { readonly handle?: Handle }).handle
}

/** White space or NULs keep a NAT binding open and say nothing else. */
function isKeepAlive(bytes: Buffer): boolean {
  for (const byte of bytes)
    if (byte !== 0x0d && byte !== 0x0a && byte !== 0x20 && byte !== 0x00) return false
  return true
}
