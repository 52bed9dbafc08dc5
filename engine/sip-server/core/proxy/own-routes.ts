/**
 * Our entries in the route sets of calls that we forward. Each is sealed for its call, so that a
 * Route with our address does not make an open relay of this server: only a party that was given it
 * in a Record-Route can use it, and only for that call.
 *
 * A seal has no age. The route set of a dialog never changes (RFC 3261 §12.2), and we keep no state
 * that would show how long the call lasts: one that expires would cut the longest calls off from
 * their BYE. What it is good for afterwards is little: requests with a To tag and the Call-ID of a
 * call that an application has let its owner place, until this process ends and its key with it.
 */
import { flowTo, type HopFinder, hopOf, namesOneOf, ownUri } from '../next-hop.ts'
import type { Target } from './forwarded-text.ts'
import type { CoreOptions } from '../parts.ts'
import { bareUri } from '../../dialog/dialog.ts'
import { type Flow, isNamed, isReliable, type Listener } from '../../flow.ts'
import type { SipMessage } from '../../message/message.ts'
import { parseUri } from '../../message/fields.ts'
import type { RecordRouteTokens, Refusal, SipServerOptions } from '../../options.ts'

/** The meaning of one of our Route values. */
export interface OwnRoute {
  /**
   * The connection on which the party behind this entry came; undefined: by its own address.
   * RFC 5626 §5.3: a phone behind a stream is reached on that stream and no other way.
   */
  readonly flow: Flow | undefined
}

export class OwnRoutes {
  readonly #options: Pick<CoreOptions, 'listeners' | 'seal' | 'sameSecret'>
  #areGiven = false

  constructor(options: Pick<CoreOptions, 'listeners' | 'seal' | 'sameSecret'>) {
    this.#options = options
  }

  /** Some request carries one: until then no Route needs to be looked at. */
  get areGiven(): boolean {
    return this.#areGiven
  }

  /** A loose route to `listener`; with a connection, back to it. */
  entry(listener: Listener, callId: string, connectionId: number, isSecure: boolean): string {
    this.#areGiven = true
    const user = connectionId === 0 ? '' : `c${connectionId}`
    const seal = this.#options.seal(`${connectionId} ${callId}`)
    return `<${ownUri(listener, user, isSecure)};lr;seal=${seal}>`
  }

  /** Undefined: not one of ours, or not of this call. */
  read(value: string, callId: string): OwnRoute | undefined {
    const uri = parseUri(bareUri(value))
    const seal = uri?.params.get('seal')
    if (uri === undefined || seal === undefined) return undefined
    const connectionId = /^c\d{1,15}$/.test(uri.user) ? Number(uri.user.slice(1)) : 0
    if (!this.#options.sameSecret(seal, this.#options.seal(`${connectionId} ${callId}`)))
      return undefined
    const protocol = hopOf(value)?.protocol
    const listener = this.#options
      .listeners()
      .find(
        (own) =>
          own.protocol === protocol && isNamed(own, uri.host) && own.advertisedPort === uri.port,
      )
    if (listener === undefined) return undefined
    const isStream = connectionId !== 0 && isReliable(listener.protocol)
    return { flow: isStream ? { ...flowTo(listener, '', 0), connectionId } : undefined }
  }
}

/**
 * Routes with a flow token (RFC 5626 §5.1, §5.3): our address, and in its user part a text of which
 * `SipServerOptions.readToken` knows where a request with it goes. What else the sender has written
 * as Route is not followed: the token alone says the next hop, so that a party that holds one
 * reaches nothing else by it.
 */
interface TokenTarget {
  readonly target: Target
  readonly recordRoute: RecordRouteTokens | undefined
  readonly patienceMs: number | undefined
}

export class TokenRoutes {
  readonly #hops: HopFinder
  readonly #readToken: NonNullable<SipServerOptions['readToken']>

  constructor(hops: HopFinder, readToken: NonNullable<SipServerOptions['readToken']>) {
    this.#hops = hops
    this.#readToken = readToken
  }

  /** Undefined: the request shows no token. */
  read(request: SipMessage, source: Flow): TokenTarget | Refusal | undefined {
    if (!request.has('Route')) return undefined
    const token = this.#tokenIn(request)
    if (token === undefined) return undefined
    const { method, uri, callId } = request
    const verdict = this.#readToken({
      token,
      method,
      uri,
      callId,
      isInDialog: request.toTag !== '',
      protocol: source.listener.protocol,
      sourceAddress: source.address,
      sourcePort: source.port,
    })
    if (verdict === undefined) return undefined
    if (verdict.kind === 'refused') return { status: verdict.status, reason: verdict.reason }
    if (request.text.length > MAX_CHARACTERS) return tooLarge
    const { nextHop, recordRoute, patienceMs } = verdict
    const hop = this.#hops.nextHop(nextHop)
    if ('problem' in hop) return flowFailed
    const target = { uri, routes: [], hop: nextHop, isAddress: true } as const
    const found = hop.question ? target : { ...target, flow: hop.flow }
    return { target: found, recordRoute, patienceMs }
  }

  /** Of our sealed routes the user part names a connection. */
  #tokenIn(request: SipMessage): string | undefined {
    const [first = ''] = request.list('Route')
    const text = bareUri(first)
    const uri = parseUri(text)
    if (uri === undefined || uri.user === '' || uri.params.has('seal')) return undefined
    return namesOneOf(this.#hops.listeners(), text) ? uri.user : undefined
  }
}

/**
 * A forwarded request grows by headers of ours. All requests between two servers share a
 * connection, which ends with a message that the other server cannot read (64 kB).
 */
const MAX_CHARACTERS = 16_384
/** RFC 3261 §21.5.7. */
const tooLarge: Refusal = { status: 513, reason: 'Message Too Large' }
/** RFC 5626 §5.3.1: who sent it may try another flow to the same phone. */
const flowFailed: Refusal = { status: 430, reason: 'Flow Failed' }
