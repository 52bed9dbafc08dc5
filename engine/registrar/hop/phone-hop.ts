/**
 * Phones across instances. A phone behind NAT, or on a stream, is reached only from the instance
 * that holds its flow. Another instance sends requests for it there, with a flow token as Route,
 * and the holder forwards them as an edge proxy does (RFC 5626 §5.3). The instance that sends has
 * authorized the call, and charges and records it; the holder does none of it.
 *
 * A stranger, or a phone, gains nothing by a token that it has seen. The token of a call is never
 * shown to a phone; it lives for a minute, leads to one Contact, and is taken from the address of
 * the instance alone that has made it. Those in a dialog lead to that instance's SIP port or to
 * that phone, whatever else the request says, and only for one Call-ID. Tokens of dialogs have no
 * end: a route set never changes (RFC 3261 §12.2), and the longest call must be able to end.
 */
import { hostPort } from '../../../schema/sip/index.ts'
import type { Log } from '../../../schema/contracts/log.ts'
import { canonicalAddress } from '../../../schema/net/ip-address.ts'
import {
  type Binding,
  type BindingSource,
  isReachedByContact,
  targetOf,
  uriOf,
  type ContactTarget,
} from '../bindings.ts'
import {
  FlowTokens,
  type CallToken,
  type Home,
  type ToInstanceToken,
  type ToPhoneToken,
} from './flow-token.ts'

/** An instance as the others see it. */
export interface PeerInstance {
  /** The SIP address for requests of other instances. */
  readonly sip: {
    /** IPv6 without brackets. */
    readonly host: string
    readonly port: number
    readonly protocol: 'udp' | 'tcp' | 'tls'
  }
  /** Addresses from which its requests come. */
  readonly addresses: readonly string[]
  /** Its heartbeat is recent. */
  readonly isAlive: boolean
  /** Grows with each start. Absent: it is not known. */
  readonly epoch?: number | undefined
}

export interface PhoneHopDeps {
  /** The name of this instance. */
  readonly self: string
  /** Undefined: there is no such instance, or it cannot be reached. */
  readonly peer: (name: string) => PeerInstance | undefined
  /** 32 bytes that all instances of the installation have, and nothing else. */
  readonly key: Buffer
  /** Milliseconds UTC, by the clock of the machine: other instances have another steady one. */
  readonly wallNow: () => number
  /** Living ones. */
  readonly bindingsOf: (home: Home) => readonly Binding[]
  /** A token is forged, too old, or comes from where it must not. */
  readonly onRefused: (source: BindingSource) => void
  /** A token that only an instance can have, and no phone, has come from this address. */
  readonly onToken: (address: string) => void
  readonly log: Log
}

/** A request with a flow token, as `SipServerOptions.readToken` gets it. */
export interface HopRequest {
  readonly token: string
  readonly method: string
  readonly uri: string
  readonly callId: string
  readonly isInDialog: boolean
  readonly protocol: string
  readonly sourceAddress: string
  readonly sourcePort: number
}

export type HopVerdict =
  | { readonly kind: 'refused'; readonly status: number; readonly reason: string }
  | {
      readonly kind: 'forwarded'
      readonly nextHop: string
      readonly recordRoute?: { readonly toCallee: string; readonly toCaller: string }
      /** How long the phone may say nothing. */
      readonly patienceMs?: number
    }

/** Longer than charging takes between the choice of the phones and their INVITE. */
const LIFETIME_MS = 60_000
/** Difference that the clocks of two instances may have. */
const MAX_SKEW_MS = 30_000

/** As an instance waits for phones of its own. */
const PHONE_TIMEOUT_MS = 4_000

/** Requests that are sent to phones outside dialogs. */
const methods: ReadonlySet<string> = new Set(['INVITE', 'MESSAGE'])

export class PhoneHop {
  readonly #deps: PhoneHopDeps
  readonly #tokens: FlowTokens
  readonly #totals = { forwarded: 0, refused: 0 }

  constructor(deps: PhoneHopDeps) {
    this.#deps = deps
    this.#tokens = new FlowTokens(deps.key)
  }

  /** Whether a phone can be called from here. */
  isReachable(binding: Binding): boolean {
    const { holder, path } = binding
    if (holder === this.#deps.self || path.length > 0 || isReachedByContact(binding)) return true
    return this.#deps.peer(holder)?.isAlive === true
  }

  /**
   * How a phone is called from here; undefined: not at all, for the instance that holds its flow is
   * gone.
   */
  targetOf(binding: Binding, home: Home): ContactTarget | undefined {
    const target = targetOf(binding)
    const { holder, contact: uri, path } = binding
    // RFC 3327: the flow is that of a proxy, which every instance reaches by its address.
    if (holder === this.#deps.self || path.length > 0) return target
    const peer = this.#deps.peer(holder)
    if (peer?.isAlive !== true) return isReachedByContact(binding) ? target : undefined
    const { self: issuer, wallNow } = this.#deps
    const token = this.#tokens.write(
      { kind: 'call', ...home, issuer, issuedAt: wallNow() },
      { holder, uri, callId: '' },
    )
    const { nextHop: _, ...phone } = target
    const route = `<${uriOfPeer(peer, token)};lr>`
    const lastHop = uriOf(binding.source)
    const run = peer.epoch === undefined ? {} : { holderRun: peer.epoch }
    return { ...phone, nextHop: undefined, routes: [route], lastHop, holder, ...run }
  }

  /** Decides on a request with a flow token. Undefined: its Route is none of ours. */
  read(request: HopRequest): HopVerdict | undefined {
    const { token: text, uri, callId } = request
    const token = this.#tokens.read(text, { holder: this.#deps.self, uri, callId })
    if (token === 'none') return undefined
    const verdict = token && this.#verdictOn(token, request)
    if (verdict === undefined) return this.#refuse(request)
    if (verdict.kind === 'forwarded') this.#totals.forwarded += 1
    return verdict
  }

  /** Totals since the start. */
  telemetry(): Readonly<Record<string, number>> {
    const { forwarded, refused } = this.#totals
    return { phone_requests_forwarded_total: forwarded, flow_tokens_refused_total: refused }
  }

  #verdictOn(
    token: CallToken | ToPhoneToken | ToInstanceToken,
    request: HopRequest,
  ): HopVerdict | undefined {
    switch (token.kind) {
      case 'call':
        return this.#begin(token, request)
      case 'to-phone':
        return this.#toPhone(token, request)
      case 'to-instance':
      default:
        return this.#toInstance(token, request)
    }
  }

  /**
   * Outside dialogs. The binding is looked up again: the phone may have left, or its password been
   * changed.
   */
  #begin(token: CallToken, request: HopRequest): HopVerdict | undefined {
    const { issuer, issuedAt, domain, extension } = token
    const age = this.#deps.wallNow() - issuedAt
    if (request.isInDialog || !methods.has(request.method)) return undefined
    if (!this.#isFrom(issuer, request)) return undefined
    if (age < -MAX_SKEW_MS || age > LIFETIME_MS + MAX_SKEW_MS) {
      this.#deps.log('warn', 'the token of another instance is too old: compare the clocks', {
        node: issuer,
        ageMs: age,
      })
      return undefined
    }
    this.#deps.onToken(request.sourceAddress)
    const flow = this.#flowOf(token, request.uri)
    if (flow === undefined) return flowFailed
    const nextHop = uriOf(flow)
    if (request.method !== 'INVITE') return { kind: 'forwarded', nextHop }
    const use = { holder: this.#deps.self, uri: '', callId: request.callId }
    const dialog = { domain, extension, instance: issuer }
    const { address } = flow
    const toCallee = this.#tokens.write({ kind: 'to-phone', ...dialog, flow }, use)
    const toCaller = this.#tokens.write({ kind: 'to-instance', ...dialog, address }, use)
    const recordRoute = { toCallee, toCaller }
    return { kind: 'forwarded', nextHop, recordRoute, patienceMs: PHONE_TIMEOUT_MS }
  }

  /** A phone that has registered again is reached by its new flow. */
  #toPhone(token: ToPhoneToken, request: HopRequest): HopVerdict | undefined {
    if (!request.isInDialog || !this.#isFrom(token.instance, request)) return undefined
    return { kind: 'forwarded', nextHop: uriOf(this.#flowOf(token, request.uri) ?? token.flow) }
  }

  /**
   * From the address of the phone when the dialog began, or where it has registered since. An
   * instance without a heartbeat may go on with its calls: it gets the request all the same.
   */
  #toInstance(token: ToInstanceToken, request: HopRequest): HopVerdict | undefined {
    if (!request.isInDialog) return undefined
    const source = canonicalAddress(request.sourceAddress)
    const isThere = ({ source: { address } }: Binding): boolean => address === source
    if (token.address !== source && !this.#deps.bindingsOf(token).some(isThere)) return undefined
    const peer = this.#deps.peer(token.instance)
    return peer ? { kind: 'forwarded', nextHop: uriOfPeer(peer) } : noSuchCall
  }

  #flowOf(home: Home, contact: string): BindingSource | undefined {
    const held = this.#deps
      .bindingsOf(home)
      .find((binding) => binding.contact === contact && binding.holder === this.#deps.self)
    return held?.path.length === 0 ? held.source : undefined
  }

  #isFrom(instance: string, { sourceAddress }: HopRequest): boolean {
    return this.#deps.peer(instance)?.addresses.includes(canonicalAddress(sourceAddress)) === true
  }

  /** The ACK of a refusal has the Route of its request (RFC 3261 §17.1.1.3), and goes nowhere. */
  #refuse(request: HopRequest): HopVerdict {
    const { method, protocol, sourceAddress: address, sourcePort: port } = request
    if (method !== 'ACK') {
      this.#totals.refused += 1
      this.#deps.onRefused({ protocol, address, port })
    }
    return { kind: 'refused', status: 403, reason: 'Forbidden' }
  }
}

/** The URI of another instance, with a token as its user part. */
export function uriOfPeer({ sip: { host, port, protocol } }: PeerInstance, token?: string): string {
  const place = hostPort(host, port)
  // By UDP without a transport: what is too large for a datagram may go by TCP (RFC 3261 §18.1.1).
  const way = protocol === 'udp' ? '' : `;transport=${protocol}`
  return `sip:${token === undefined ? '' : `${token}@`}${place}${way}`
}

/** RFC 5626 §5.3.1: the phone may have another flow. */
const flowFailed: HopVerdict = { kind: 'refused', status: 430, reason: 'Flow Failed' }
const noSuchCall: HopVerdict = {
  kind: 'refused',
  status: 481,
  reason: 'Call/Transaction Does Not Exist',
}
