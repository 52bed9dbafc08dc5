/** SIP over TLS (RFC 3261 §26.2, RFC 5922). */
import { isIP, type Socket } from 'node:net'
import {
  checkServerIdentity,
  connect,
  createServer,
  type PeerCertificate,
  TLSSocket,
} from 'node:tls'
import { errorCode } from '../errors.ts'
import type { Flow } from '../flow.ts'
import { parseVia } from '../../../schema/sip/fields.ts'
import { splitList } from '../../../schema/sip/headers.ts'
import type { ServerLog } from '../options.ts'
import type { Credentials } from './credentials.ts'
import { listen } from './listen.ts'
import { type StreamOptions, StreamTransport, type Wire } from './stream.ts'
import {
  boundListener,
  localAddressOf,
  type Transport,
  type TransportCallbacks,
} from './transport.ts'

export interface TlsTransportOptions extends StreamOptions {
  readonly credentials: Credentials
  readonly log: ServerLog
}

/** @throws ListenError when the address cannot be bound. */
export async function openTls(
  options: TlsTransportOptions,
  callbacks: TransportCallbacks,
): Promise<Transport> {
  const { credentials, limits, log } = options
  const { clientCertificates = 'off' } = credentials.options
  const server = createServer({
    ...credentials.settings,
    requestCert: clientCertificates !== 'off',
    rejectUnauthorized: clientCertificates === 'required',
    handshakeTimeout: limits.handshakeMs,
  })
  credentials.onChange((settings) => server.setSecureContext(settings))
  server.on('tlsClientError', (error, socket) => {
    // Only on request: scanners would fill the log. Node leaves a silent socket open.
    log('debug', 'a TLS handshake has failed', {
      from: socket.remoteAddress,
      reason: errorCode(error),
    })
    socket.destroy()
  })
  const { host, port } = await listen(server, 'tls', options)
  const listener = boundListener('tls', { address: host, port }, options.advertisedHost, options)
  return new StreamTransport(server, new TlsWire(options), listener, options, callbacks)
}

/** Peers whose failure is in the log and that have not been reached since. */
const maxReported = 1_000

class TlsWire implements Wire {
  readonly acceptEvent = 'secureConnection'
  readonly readyEvent = 'secureConnect'
  readonly #credentials: Credentials
  readonly #verifies: boolean
  readonly #log: ServerLog
  readonly #reported = new Set<string>()

  constructor({ credentials, log }: TlsTransportOptions) {
    this.#credentials = credentials
    this.#verifies = credentials.options.verifyServers ?? true
    this.#log = log
  }

  dial({ listener, address, port, hostName }: Flow): Socket {
    const socket = connect({
      host: address,
      port,
      ...localAddressOf(listener),
      secureContext: this.#credentials.context,
      // RFC 6066 §3: a name, never an address.
      ...(hostName === undefined || isIP(hostName) !== 0 ? {} : { servername: hostName }),
      rejectUnauthorized: this.#verifies,
      checkServerIdentity: (_name, certificate) =>
        identityProblem(hostName ?? address, certificate),
    })
    socket.once('secureConnect', () => this.#reported.delete(placeOf(address, port, hostName)))
    return socket
  }

  /**
   * Without verification a name proves nothing, so one connection serves all names of an address.
   */
  nameFor({ hostName }: Flow): string | undefined {
    return this.#verifies ? hostName?.toLowerCase() : undefined
  }

  hasProved(socket: Socket, hostName: string): boolean {
    return socket instanceof TLSSocket && hasProved(socket, hostName)
  }

  aliasOf(socket: Socket, text: string): number | undefined {
    return socket instanceof TLSSocket && socket.authorized ? aliasPort(text) : undefined
  }

  failed({ address, port, hostName }: Flow, reason: string): void {
    const place = placeOf(address, port, hostName)
    if (this.#reported.has(place) || this.#reported.size >= maxReported) return
    this.#reported.add(place)
    this.#log('warn', 'no TLS connection can be made', { address, port, hostName, reason })
  }
}

const placeOf = (address: string, port: number, hostName = ''): string =>
  `${address} ${port} ${hostName}`

/** Why a certificate does not belong to a host; undefined: it does. */
function identityProblem(host: string, certificate: PeerCertificate): Error | undefined {
  // RFC 5922 §7.1: a SIP URI without user stands for the domain, as a DNS name does.
  const isNamed = (certificate.subjectaltname ?? '')
    .split(', ')
    .some((name) => name.toLowerCase() === `uri:sip:${host.toLowerCase()}`)
  return isNamed && isIP(host) === 0 ? undefined : checkServerIdentity(host, certificate)
}

/** Whether the peer of an accepted connection has shown a valid certificate of `host`. */
const hasProved = (socket: TLSSocket, host: string): boolean =>
  socket.authorized && identityProblem(host, socket.getPeerCertificate()) === undefined

/**
 * RFC 5923 §5: `alias` in the Via of a request says that its sender takes requests on this
 * connection too, as if at the port that the Via names; undefined: it does not.
 */
function aliasPort(text: string): number | undefined {
  const [, line] = /\r\n(?:via|v)[ \t]*:[ \t]*([^\r\n]*)/i.exec(text) ?? []
  const via = line === undefined ? undefined : parseVia(splitList(line)[0] ?? '')
  if (via?.params.has('alias') !== true) return undefined
  return via.port === 0 ? 5_061 : via.port
}
