/** SIP over TCP (RFC 3261 §18). */
import { connect, createServer } from 'node:net'
import { listen } from './listen.ts'
import { type StreamOptions, StreamTransport, type Wire } from './stream.ts'
import {
  boundListener,
  localAddressOf,
  type Transport,
  type TransportCallbacks,
} from './transport.ts'

/** @throws ListenError when the address cannot be bound. */
export async function openTcp(
  options: StreamOptions,
  callbacks: TransportCallbacks,
): Promise<Transport> {
  const server = createServer()
  const { host, port } = await listen(server, 'tcp', options)
  const listener = boundListener('tcp', { address: host, port }, options.advertisedHost, options)
  return new StreamTransport(server, tcp, listener, options, callbacks)
}

/** TCP proves no name: the host at an address is taken for the one that was looked for. */
const tcp: Wire = {
  acceptEvent: 'connection',
  readyEvent: 'connect',
  dial: ({ listener, address, port }) =>
    connect({ host: address, port, ...localAddressOf(listener) }),
  nameFor: () => undefined,
  hasProved: () => true,
  aliasOf: () => undefined,
  failed: () => undefined,
}
