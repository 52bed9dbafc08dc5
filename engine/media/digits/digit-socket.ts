/** The UDP socket of `MEDIA_DTMF_LISTEN` (I/O). */
import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { isIPv6 } from 'node:net'

interface DigitPlace {
  readonly host: string
  readonly port: number
}

/**
 * Both processes of an upgrade bind the port: the kernel gives each datagram to the one that has bound it last, and to
 * the other again when that has closed it. Rejects: the port cannot be bound.
 */
export async function openDigitSocket(
  { host, port }: DigitPlace,
  received: (datagram: Buffer, source: string) => void,
): Promise<Socket> {
  const socket = createSocket({ type: isIPv6(host) ? 'udp6' : 'udp4', reuseAddr: true })
  socket.on('message', (datagram, { address }) => received(datagram, address))
  socket.bind(port, host)
  await once(socket, 'listening')
  socket.on('error', () => undefined)
  return socket
}
