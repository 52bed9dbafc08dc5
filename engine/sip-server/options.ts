/** The options of a SIP server, and their defaults. */
import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { performance } from 'node:perf_hooks'
import type { Flow, HopTarget } from './flow.ts'
import type { Protocol } from '../../schema/sip/message.ts'
import type { Timers } from './transaction/machine.ts'
import type { FrameLength } from './wire/frame.ts'

export type ServerLog = (
  level: 'debug' | 'info' | 'warn' | 'error',
  message: string,
  fields?: Readonly<Record<string, unknown>>,
) => void

/** Beyond these limits, requests outside dialogs get 503; requests in dialogs pass. */
export interface CallLimits {
  /** Requests that wait for an application's final response; an INVITE does so while it rings. */
  readonly maxUnanswered: number
  /** Dialogs, early ones included: a bridged call has two. */
  readonly maxDialogs: number
}

/** Limits for a heap of 1 GB, at 25 kB for a dialog, with room for everything else. */
export const defaultLimits: CallLimits = { maxUnanswered: 20_000, maxDialogs: 40_000 }

/** A request outside dialogs, as the options below get it. */
export interface NewRequest {
  readonly method: string
  readonly uri: string
  readonly protocol: Protocol
  readonly sourceAddress: string
  readonly sourcePort: number
  /** The whole message. */
  readonly text: string
  /** The first value of a header by its canonical name, such as `User-Agent`. */
  get(name: string): string | undefined
}

/**
 * An INVITE that begins a call, and that the server has refused by itself: much of it may be
 * unreadable.
 */
export interface RefusedInvite extends NewRequest {
  readonly status: number
  readonly reason: string
  /** Equal for copies of it. */
  readonly key: string
  /** Every header in order, as `AppMessage.forEach`. */
  forEach(visit: (name: string, value: string) => void): void
}

/** The destination of a new request, or its answer. */
export type RequestRoute =
  /** One of the connected applications that authenticated with it takes it. */
  | { readonly tag: string }
  /**
   * An application that the server connects to for this request: `tcp://host:port`,
   * `tls://host:port` (`srf.listen`).
   */
  | { readonly uri: string }
  | { readonly reject: { readonly status: number; readonly reason?: string | undefined } }
  /** 302 with these Contacts. */
  | { readonly redirect: readonly string[] }
  | { readonly proxy: ProxyRoute }

export type RouteAnswer = RequestRoute | undefined | Promise<RequestRoute | undefined>

/** A request is forwarded there without an application. */
export interface ProxyRoute {
  readonly destinations: readonly string[]
  /** Stays in the dialog by a Record-Route. */
  readonly remainInDialog: boolean
  readonly followRedirects: boolean
  readonly simultaneous: boolean
  readonly provisionalTimeoutMs: number | undefined
  readonly finalTimeoutMs: number | undefined
}

/**
 * A request whose first Route is an address of this server with a user part: a flow token (RFC 5626
 * §5.1).
 */
export interface TokenRequest {
  readonly token: string
  readonly method: string
  readonly uri: string
  readonly callId: string
  /** The request has a To tag. */
  readonly isInDialog: boolean
  readonly protocol: Protocol
  readonly sourceAddress: string
  readonly sourcePort: number
}

/** The decision on a request with a flow token. */
export type TokenVerdict =
  | { readonly kind: 'refused'; readonly status: number; readonly reason: string }
  | {
      readonly kind: 'forwarded'
      /**
       * A SIP URI; `connection=registered`: by the connection that a phone has registered over, or
       * not at all.
       */
      readonly nextHop: string
      /** Stays in the dialog, by these tokens in Record-Route. */
      readonly recordRoute?: RecordRouteTokens | undefined
      /**
       * The answer is 408 when nothing at all comes back for so long. Milliseconds; absent: as long
       * as a transaction lives.
       */
      readonly patienceMs?: number | undefined
    }

export interface RecordRouteTokens {
  /** Token in the Route of requests from the caller to the callee. */
  readonly toCallee: string
  readonly toCaller: string
}

/** The answer to a new request that no application gets; `drop`: none. */
export type Screening = 'drop' | { readonly status: number; readonly reason: string }

/** The dialog that a request belongs to, and the address that its peer has sent from. */
export interface DialogOfPeer {
  readonly callId: string
  readonly localTag: string
  readonly remoteTag: string
  readonly address: string
  readonly port: number
}

/**
 * The way to the peer of a dialog as the peer has given it, by its Contact and the Record-Route of
 * its messages.
 */
export interface WayToPeer extends DialogOfPeer {
  /** Protocol of the flow by which the peer has sent. */
  readonly protocol: Protocol
  /** Values of Route, the next one first. */
  readonly routes: readonly string[]
  /** The remote target: a URI. */
  readonly target: string
}

/** The answer to a request that is refused. An ACK gets none. */
export interface Refusal {
  readonly status: number
  readonly reason: string
  /** Whole header lines, such as challenges. */
  readonly lines?: string
}

/**
 * Who refreshes a session whose caller wants a timer and leaves it to us (RFC 4028 §9); `none`: no
 * timer.
 */
export type Refresher = 'none' | 'uac' | 'uas'

/** How far a source is trusted. */
export type SourceStatus = 'known' | 'proven' | 'stranger'

/** PEM files for `tls` and `wss`. A changed one is read again; a bad one then changes nothing. */
export interface TlsOptions {
  /** Our certificate, followed by its chain unless that is in `chainFile`. */
  readonly certFile: string
  readonly keyFile: string
  readonly chainFile?: string | undefined
  /** Trusted CA certificates. Default: those that Node.js ships (Mozilla's). */
  readonly caFile?: string | undefined
  /** Default: TLS 1.2. */
  readonly minVersion?: 'TLSv1.2' | 'TLSv1.3' | undefined
  /** Cipher suites in the form of OpenSSL, such as `ECDHE+AESGCM`. Default: those of Node.js. */
  readonly ciphers?: string | undefined
  /**
   * Certificates of peers that connect to a `tls` listener. `optional`: one is asked for, and is
   * checked before the connection is used for more than answers (RFC 5923). Default: off.
   */
  readonly clientCertificates?: 'off' | 'optional' | 'required' | undefined
  /**
   * Whether a server that we connect to must show a valid certificate for the name (or address)
   * that was asked for. Default: true; false only within networks that are trusted anyhow.
   */
  readonly verifyServers?: boolean | undefined
}

export interface CaptureOptions {
  readonly host: string
  readonly port: number
  /** Packets go by TLS. Default: by UDP. */
  readonly tls?: Pick<TlsOptions, 'caFile' | 'minVersion' | 'verifyServers'> | undefined
  /** The number of this server at Homer. */
  readonly agentId: number
  /** The authenticate key. */
  readonly password?: string | undefined
  /**
   * The id under which it shows the messages of a Call-ID as one call; undefined: they belong to
   * none.
   */
  readonly correlationOf?: (callId: string) => string | undefined
  /** Clock for stamps. Milliseconds since the epoch; default: the clock of the server. */
  readonly now?: () => number
}

export interface WebSocketOptions {
  /** Web pages that may connect, such as `https://phone.example.com`. Default: all. */
  readonly origins?: readonly string[] | undefined
}

export interface SipServerOptions {
  /**
   * Addresses to bind, at least one. Port 0: one that is free. IPv6 without brackets. `tls` and
   * `wss` need `tls` below.
   */
  readonly listen: readonly {
    readonly protocol: Protocol
    readonly host: string
    readonly port: number
    /** Replaces the one for all listeners, below. */
    readonly advertisedHost?: string | undefined
    /**
     * Networks, such as `10.0.0.0/16`: they are reached from this listener, and see its bound
     * address.
     */
    readonly localNets?: readonly string[] | undefined
    /** Other host names and addresses that mean this listener: nothing is sent there. */
    readonly names?: readonly string[] | undefined
    /** A socket that is bound there already: nothing is bound then. */
    readonly descriptor?: number
  }[]
  /**
   * The address in Via and Contact of every listener. Default: the bound one; for `0.0.0.0` and
   * `::` the first address of the machine that is not internal, or else loopback.
   */
  readonly advertisedHost?: string
  readonly tls?: TlsOptions
  readonly webSocket?: WebSocketOptions
  /** Address that drachtio applications connect to by TCP. Default: none, only in process. */
  readonly admin?: { readonly host: string; readonly port: number }
  /** The same by TLS; needs `tls`. */
  readonly adminTls?: { readonly host: string; readonly port: number } | undefined
  /**
   * The unit of the length of frames to applications by TCP or TLS: `characters` for
   * drachtio-srf before 5.0, which loses its place at the first one that is not ASCII otherwise.
   * Default: `bytes`.
   */
  readonly frameLength?: FrameLength | undefined
  /** Address at which `/metrics` is served by HTTP. Default: none. */
  readonly metrics?: { readonly host: string; readonly port: number } | undefined
  /** A copy of each SIP message, received and sent, goes to Homer there (HEP3). Default: none. */
  readonly capture?: CaptureOptions | undefined
  /** TCP keep-alive of applications; 0: none. Seconds. Default: 45. */
  readonly adminKeepAliveSeconds?: number | undefined
  /**
   * A peer behind NAT gets the requests of its dialog by UDP where it sent from; false: at its
   * Contact. Default: true.
   */
  readonly detectsNat?: boolean | undefined
  /** The secret that applications must present. Default: none is let in. */
  readonly secret?: string | undefined
  /** RFC 3261 Table 4; milliseconds. Default: the RFC's. */
  readonly timers?: Partial<Timers>
  /**
   * Shortest session interval in seconds (Min-SE, RFC 4028 §5): a request below gets 422. Default:
   * 90, the least that the RFC allows.
   */
  readonly minSessionSeconds?: number
  /** Default: 20 000 unanswered requests, 40 000 dialogs. */
  readonly limits?: Partial<CallLimits>
  /** Milliseconds since the epoch; must not jump backwards. Default: the monotonic clock. */
  readonly now?: () => number
  /** Random bytes of cryptographic quality. Default: those of `node:crypto`. */
  readonly randomBytes?: (size: number) => Uint8Array
  /**
   * DNS servers that are asked for next hops, `address` or `address:port`. Default: the system's,
   * after its hosts file.
   */
  readonly dnsServers?: readonly string[]
  /**
   * Asked for each address that a host name was looked up to; false leaves it out, as if the name
   * did not lead there. `peer`: the address of the peer that has given the name in a dialog.
   * Default: a name may lead anywhere.
   */
  readonly mayReach?: (host: string, target: HopTarget, peer?: string) => boolean
  /** Default: silent. */
  readonly log?: ServerLog
  /**
   * Asked for each datagram before it is decoded, and for each message of a stream; false drops it
   * in silence. Asked for each new connection too, with an empty packet; false closes it. Default:
   * admits all.
   */
  readonly admit?: (source: Flow, packet: Buffer | string) => boolean
  /**
   * How far a source is trusted; asked for each new connection, and under overload for each new
   * call. `known`: a peer that speaks for many, whose connections `connectionsPerAddress` does not
   * limit. `stranger`: gets no connection once a listener is three quarters full, and under
   * overload no call. Default: all are `proven`, which is in between.
   */
  readonly sourceStatus?: (source: Flow) => SourceStatus
  /**
   * Connections that one address, or one IPv6 network of /64, may have to a listener. Default: 256.
   */
  readonly connectionsPerAddress?: number
  /**
   * Asked for each new request, now or later. Undefined, and by default: an application that asked
   * for its method. A promise that fails answers 480.
   */
  readonly routeRequest?: ((request: NewRequest) => RouteAnswer) | undefined
  /**
   * The methods in `Allow` of a 405 of the server's own, such as `INVITE, ACK, BYE`. Default: those
   * that applications have asked for, and those of dialogs.
   */
  readonly allow?: string | undefined
  /** Asked for each new request before `routeRequest`. Undefined, and by default: it goes on. */
  readonly screen?: ((request: NewRequest) => Screening | undefined) | undefined
  /**
   * Asked for each request in a dialog that comes from none of the addresses by which its peer is
   * known: who has read Call-ID and tags may have sent it. Undefined, and by default: it is let in.
   */
  readonly admitInDialog?:
    ((request: NewRequest, dialog: DialogOfPeer) => Refusal | undefined) | undefined
  /**
   * Asked for each way to a peer that is not just the address by which it has sent; of dialogs of
   * an application in this process. False: the requests of the dialog go there, whatever Contact
   * and Record-Route say. Undefined, and by default: they are followed.
   */
  readonly mayFollow?: ((way: WayToPeer) => boolean) | undefined
  /**
   * Asked for each request with a flow token, before `screen`. Undefined, and by default: its Route
   * means nothing. A forwarded request has no other Route left, and no application hears of it.
   */
  readonly readToken?: ((request: TokenRequest) => TokenVerdict | undefined) | undefined
  /**
   * Told of each INVITE that begins a call and is refused because it is malformed, or asks for what
   * no call has; of its copies, too. Not of one that its sender repeats in another form (422).
   * Default: nobody is.
   */
  readonly onRefusedInvite?: ((invite: RefusedInvite) => void) | undefined
  /**
   * Told when a connection is closed over which a phone has registered: it is called over no other
   * one (RFC 5626 §5.3). Told after the 2xx to a REGISTER, too, whose connection is closed by then.
   * Default: nobody is.
   */
  readonly onRegisteredFlowClosed?: ((flow: Flow) => void) | undefined
  /**
   * SIP URI of the hop for requests outside dialogs that name none by themselves. Default: their
   * Request-URI.
   */
  readonly outboundProxy?: string | undefined
  /** Default: `none`. */
  readonly defaultRefresher?: Refresher | undefined
  /** 180 follows 100 at once for each INVITE that an application gets. Default: false. */
  readonly alwaysSend180?: boolean | undefined
  /**
   * How long the calls of an application go on after its connection was lost, before they get BYE.
   * Milliseconds. Default: 5 000.
   */
  readonly graceMs?: number
  /**
   * Under overload new calls get 503, except for those to a Request-URI for which this is true;
   * asked only about a call that would be refused. `urn:service:sos` is always let in. Default:
   * none.
   */
  readonly isUrgent?: (requestUri: string) => boolean
}

/** RFC 4028 §5. */
export const defaultMinSessionSeconds = 90

/** Reported to applications; drachtio-srf wants three numbers, and pings from 0.8.2 on. */
export const serverVersion = 'v0.9.99-tollgate'

/** Limits of the ports that applications connect to. */
export interface AdminLimits {
  readonly maxClients: number
  /**
   * Bytes that may wait for an application that does not read; beyond, its connection is closed.
   */
  readonly maxBufferedBytes: number
  /** TCP keep-alive; 0: none. Milliseconds; default: 45 000. */
  readonly keepAliveMs?: number
  /** Time for the TLS handshake. Milliseconds; default: 5 000. */
  readonly handshakeMs?: number
  /** Time for the first whole frame. Milliseconds; default: 10 000. */
  readonly firstFrameMs?: number
  /**
   * Time for which an application may read nothing while data waits for it. Milliseconds; default:
   * 10 000.
   */
  readonly unreadMs?: number
}

export const adminLimits: AdminLimits = { maxClients: 256, maxBufferedBytes: 16 * 1024 * 1024 }

/** Connections to applications, one for each request that is meant for them. */
export const maxDialled = 2_000

export const defaultGraceMs = 5_000

/** Wall time at the start of the process, carried on by the clock that never jumps. */
export const monotonicNow = (): number => startedAt + performance.now()

const startedAt = performance.timeOrigin

export const secureRandomBytes = (size: number): Uint8Array => randomBytes(size)

/** Takes the same time wherever the difference is. */
export function sameSecret(given: string, expected: string): boolean {
  return timingSafeEqual(digest(given), digest(expected))
}

/** Marks texts as ours, with a key that ends with this process. */
export function sealWith(key: Uint8Array): (text: string) => string {
  return (text) => createHmac('sha256', key).update(text).digest('hex').slice(0, 32)
}

const digest = (text: string): Buffer => createHash('sha256').update(text).digest()
