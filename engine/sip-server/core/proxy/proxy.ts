/**
 * Forwards requests: by the `proxy` command of an application, those of calls that it forwarded
 * before and stayed in (RFC 3261 §16), and those with a flow token (RFC 5626 §5.3).
 */
import { bareUri, routeBy } from '../../dialog/dialog.ts'
import type { Flow } from '../../flow.ts'
import type { SipMessage } from '../../../../schema/sip/message.ts'
import { parseOptionTags } from '../../../../schema/sip/fields.ts'
import type { ProxyCommand } from '../../application.ts'
import type { RecordRouteTokens, Refusal } from '../../options.ts'
import type { CommandRef } from '../outbox.ts'
import { hopOf, namesOneOf } from '../hop-finder.ts'
import { viaOf } from '../request-writer.ts'
import { type InboundRequest, type InboundRequests, tooManyHops } from '../uas/inbound-request.ts'
import type { Vias } from '../app-headers.ts'
import {
  addedHeaders,
  forwardedRequest,
  MAX_TARGETS,
  type ForwardTarget,
} from './forwarded-text.ts'
import { ResponseContext, type ForwardOptions, type ForwardParts } from './response-context.ts'
import type { TokenRoutes } from './token-routes.ts'

const DEFAULT_HOPS = 70

/** How a request with a route of ours goes on. */
type NextStep =
  | ({ readonly kind: 'forward'; readonly maxForwards: number } & ForwardStep)
  | { readonly kind: 'refuse'; readonly rejection: Refusal }

interface ForwardStep {
  readonly target: ForwardTarget
  readonly recordRoute?: RecordRouteTokens | undefined
  readonly patienceMs?: number | undefined
}

interface ProxyParts extends ForwardParts {
  readonly requests: InboundRequests
  /** Absent: no flow token means anything. */
  readonly tokenRoutes: TokenRoutes | undefined
}

export class Proxy {
  readonly #parts: ProxyParts

  constructor(parts: ProxyParts) {
    this.#parts = parts
  }

  /** The `proxy` command: an unanswered request goes on to other destinations. */
  command(ref: CommandRef, command: ProxyCommand, now: number): void {
    const { requests, responder, events } = this.#parts
    const { transactionId, destinations, fullResponse } = command
    const inbound = requests.find(transactionId, ref.clientId)
    if (inbound === undefined || inbound.dialog !== undefined)
      return events.refuse(ref, `Unknown transaction id: ${transactionId}`)
    const { request } = inbound
    const rejection = rejectionFor(request)
    if (rejection !== undefined) {
      const { status, reason, lines } = rejection
      responder.answer(inbound, status, reason, lines ?? '', now)
      return events.refuse(ref, `Rejected with ${status} ${reason}`)
    }
    const unusable = destinations.find((destination) => hopOf(destination) === undefined)
    if (unusable !== undefined || destinations.length > MAX_TARGETS) {
      responder.answer(inbound, 500, 'Server Internal Error', '', now)
      const what = unusable ?? `more than ${MAX_TARGETS} destinations`
      return events.refuse(ref, `error proxying request to ${what}`)
    }
    const { message: added } = command
    this.#start(inbound, this.#targetsOf(request, destinations), now, {
      maxForwards: (request.maxForwards ?? DEFAULT_HOPS) - 1,
      staysInDialog: command.remainInDialog,
      added: added === undefined ? [] : addedHeaders(added),
      isParallel: command.simultaneous,
      followsRedirects: command.followRedirects,
      timeouts: { provisionalMs: command.provisionalTimeoutMs, finalMs: command.finalTimeoutMs },
      ...(fullResponse && {
        onFinal: (text, flow, at) => events.forwarded(ref, text, flow, at),
        onDone: () => events.forwardingDone(ref),
      }),
    })
    if (!fullResponse) events.forwardingDone(ref)
  }

  /** The next step of a request, no CANCEL; undefined: it does not come by a route of ours. */
  nextStep(request: SipMessage, source: Flow): NextStep | undefined {
    const onward =
      this.#parts.tokenRoutes?.read(request, source) ?? this.#byOwnRoute(request, source)
    if (onward === undefined) return undefined
    if ('status' in onward) return { kind: 'refuse', rejection: onward }
    const hops = request.maxForwards ?? DEFAULT_HOPS
    if (hops === 0) return { kind: 'refuse', rejection: tooManyHops }
    return { kind: 'forward', ...onward, maxForwards: hops - 1 }
  }

  /** Only requests with a To tag have such routes. */
  #byOwnRoute(request: SipMessage, source: Flow): ForwardStep | undefined {
    const target = request.toTag === '' ? undefined : this.#targetOf(request, source)
    return target && { target }
  }

  /** Forwards a request that has a server transaction of its own. */
  forward(
    inbound: InboundRequest,
    { target, maxForwards, recordRoute, patienceMs }: Extract<NextStep, { kind: 'forward' }>,
    now: number,
  ): void {
    const { method, text } = inbound.request
    if (method === 'BYE') this.#parts.events.callStopped('network', 'normal-release', text, now)
    this.#start(inbound, [target], now, {
      maxForwards,
      recordRoute,
      staysInDialog: false,
      added: [],
      isParallel: false,
      followsRedirects: false,
      timeouts: { provisionalMs: patienceMs, finalMs: undefined },
    })
  }

  /**
   * The ACK of a 2xx, if it follows our Record-Route. It is not answered, so it needs no
   * transaction.
   */
  forwardAck(ack: SipMessage, viasOf: () => Vias, source: Flow, now: number): void {
    const step = this.nextStep(ack, source)
    if (step?.kind !== 'forward') return
    const { transactions, ids, hops } = this.#parts
    const { target, maxForwards } = step
    const send = ([flow]: readonly Flow[]): void => {
      if (flow === undefined) return
      const branch = ids.branch()
      const { text } = forwardedRequest(ack, {
        uri: target.uri,
        routes: target.routes,
        via: viaOf(flow.listener, branch),
        branch,
        vias: viasOf().lines,
        maxForwards,
        ownRoutes: [],
        added: [],
      })
      transactions.send(text, flow, '')
    }
    hops.find(target, now, send)
  }

  #start(
    inbound: InboundRequest,
    targets: readonly ForwardTarget[],
    now: number,
    options: ForwardOptions,
  ): void {
    new ResponseContext(this.#parts, inbound, targets, options).start(now)
  }

  #targetOf(request: SipMessage, source: Flow): ForwardTarget | undefined {
    const { ownRoutes } = this.#parts
    if (!ownRoutes.areGiven) return undefined
    const { callId } = request
    const routes = [...request.list('Route')]
    let { uri } = request
    // §16.4: a strict router before us has put our entry into the Request-URI and the target
    // behind.
    const last = routes.at(-1)
    if (last !== undefined && ownRoutes.read(uri, callId)) {
      uri = bareUri(last)
      routes.unshift(`<${request.uri}>`)
      routes.pop()
    }
    let isOurs = false
    let flow: Flow | undefined
    for (let [first] = routes; first !== undefined; [first] = routes) {
      const own = ownRoutes.read(first, callId)
      if (own === undefined) break
      isOurs = true
      if (own.flow !== undefined && own.flow.connectionId !== source.connectionId) flow = own.flow
      routes.shift()
    }
    if (!isOurs) return undefined
    const routed = routeBy(routes, uri)
    return { ...routed, hop: bareUri(routed.hop), flow }
  }

  /**
   * The Request-URI stays what the caller wrote, unless it names this server: then it becomes the
   * destination. A Route that led here is used up (§16.4).
   */
  #targetsOf(request: SipMessage, destinations: readonly string[]): readonly ForwardTarget[] {
    const listeners = this.#parts.hops.listeners()
    const isOurs = namesOneOf(listeners, request.uri)
    const [first, ...others] = request.list('Route')
    const isRouteOurs = first !== undefined && namesOneOf(listeners, bareUri(first))
    const routes = first === undefined ? [] : isRouteOurs ? others : [first, ...others]
    return destinations.map((destination) => {
      const hop = bareUri(destination)
      return { uri: isOurs ? hop : request.uri, routes, hop }
    })
  }
}

/** RFC 3261 §16.3 steps 3 and 5. */
function rejectionFor(request: SipMessage): Refusal | undefined {
  if (request.maxForwards === 0) return tooManyHops
  const required = parseOptionTags(request.all('Proxy-Require'))
  if (required.length === 0) return undefined
  const lines = `Unsupported: ${required.join(', ')}\r\n`
  return { status: 420, reason: 'Bad Extension', lines }
}
