/** Opens the transport of each protocol. */
import { monotonicNow, type ServerLog, type SipServerOptions } from '../options.ts'
import { CertificateError } from '../errors.ts'
import { type BindAddress, listen } from './listen.ts'
import { defaultStreamLimits, withSourceLimit } from './sources.ts'
import { Credentials } from './credentials.ts'
import { openTls } from './tls.ts'
import {
  type Transport,
  type TransportCallbacks,
  boundListener,
  localAddressOf,
} from './transport.ts'
import { openUdp } from './udp.ts'
import { openWebSocket } from './websocket.ts'
import { connect, createServer } from 'node:net'
import { type StreamOptions, StreamTransport, type Wire } from './stream.ts'

export class TransportOpener {
  readonly #options: SipServerOptions
  readonly #log: ServerLog
  #credentials: Credentials | undefined
  #lastConnectionId = 0

  constructor(options: SipServerOptions, log: ServerLog) {
    this.#options = options
    this.#log = log
  }

  /**
   * @throws ListenError when the address cannot be bound.
   * @throws CertificateError when it needs TLS, and there are no certificates or bad ones.
   */
  open(
    { protocol, ...place }: SipServerOptions['listen'][number] & BindAddress,
    callbacks: TransportCallbacks,
  ): Promise<Transport> {
    const { webSocket, connectionsPerAddress } = this.#options
    const advertisedHost = place.advertisedHost ?? this.#options.advertisedHost
    if (protocol === 'udp') return openUdp(place, advertisedHost, callbacks)
    const nextConnectionId = (): number => ++this.#lastConnectionId
    const limits =
      connectionsPerAddress === undefined
        ? defaultStreamLimits
        : withSourceLimit(defaultStreamLimits, connectionsPerAddress)
    const stream = { ...place, advertisedHost, limits, nextConnectionId }
    switch (protocol) {
      case 'tcp':
        return openTcp(stream, callbacks)
      case 'tls':
        return openTls({ ...stream, credentials: this.credentials(), log: this.#log }, callbacks)
      case 'ws':
        return openWebSocket({ ...stream, ...webSocket, credentials: undefined }, callbacks)
      case 'wss':
        return openWebSocket(
          { ...stream, ...webSocket, credentials: this.credentials() },
          callbacks,
        )
    }
  }

  /** Reads the certificates again; bad ones are logged and change nothing. */
  reloadCertificates(): void {
    this.#credentials?.reload()
  }

  /** Undefined: no listener has used one so far. */
  get certificate(): { readonly file: string; readonly notAfter: number } | undefined {
    const { options, notAfter } = this.#credentials ?? {}
    return options && notAfter !== undefined ? { file: options.certFile, notAfter } : undefined
  }

  stop(): void {
    this.#credentials?.stop()
  }

  /** @throws CertificateError when there are none, or bad ones. */
  credentials(): Credentials {
    const { tls, now = monotonicNow } = this.#options
    if (tls === undefined) throw new CertificateError('no certificate', 'none is given')
    return (this.#credentials ??= new Credentials(tls, this.#log, now))
  }
}

// SIP over TCP (RFC 3261 §18).

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
