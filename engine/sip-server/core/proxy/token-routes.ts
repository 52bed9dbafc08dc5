/**
 * Routes with a flow token (RFC 5626 §5.1, §5.3): our address, and in its user part a text of which
 * `SipServerOptions.readToken` knows where a request with it goes. What else the sender has written
 * as Route is not followed: the token alone says the next hop, so that a party that holds one
 * reaches nothing else by it.
 */
import { type HopFinder, namesOneOf } from '../hop-finder.ts'
import type { ForwardTarget } from './forwarded-text.ts'
import { bareUri } from '../../dialog/dialog.ts'
import type { Flow } from '../../flow.ts'
import type { SipMessage } from '../../../../schema/sip/message.ts'
import { parseUri } from '../../../../schema/sip/fields.ts'
import type { RecordRouteTokens, Refusal, SipServerOptions } from '../../options.ts'

interface TokenTarget {
  readonly target: ForwardTarget
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

  /** The user part of a sealed route is no token: it names a connection. */
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
