/** The UDP socket to one relay (I/O). */
import { createSocket } from 'node:dgram'
import { isIPv6 } from 'node:net'
import type { NgSocket, NgSocketEvents } from './ng-client.ts'

/** Where a relay listens: its address is a literal. */
export interface RelayPlace {
  readonly address: string
  readonly port: number
}

/** Answers to `delete` have some kilobytes each, and hundreds may come between two turns of the event loop. */
const RECEIVE_BUFFER_BYTES = 2 * 1024 * 1024

/** Connected: the kernel drops what comes from elsewhere, and tells at once when nothing listens there. */
export function openNgSocket(place: RelayPlace, events: NgSocketEvents): NgSocket {
  const family = isIPv6(place.address) ? 6 : 4
  const socket = createSocket({
    type: family === 6 ? 'udp6' : 'udp4',
    recvBufferSize: RECEIVE_BUFFER_BYTES,
    // Without it, dns.lookup is asked for the literal.
    lookup: (hostname, _options, found) => found(null, hostname, family),
  })
  socket.on('message', events.onDatagram)
  socket.on('error', events.onRefusal)
  socket.connect(place.port, place.address)
  return {
    send: (datagram) => {
      try {
        socket.send(datagram)
      } catch {
        // Not connected yet, or closed: the request is repeated, or ends by its timeout.
      }
    },
    close: () => {
      socket.off('message', events.onDatagram)
      socket.off('error', events.onRefusal)
      socket.on('error', () => undefined)
      socket.close()
    },
  }
}
