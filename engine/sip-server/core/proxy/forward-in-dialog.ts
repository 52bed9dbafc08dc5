/** Requests of calls that this server once forwarded and stayed in: RFC 3261 §16.4 and §16.6. */
import { bareUri, routeBy } from '../../dialog/dialog.ts'
import type { Flow } from '../../flow.ts'
import type { SipMessage } from '../../message/message.ts'
import { tellStop } from '../applications/call-details.ts'
import { viaOf } from '../compose.ts'
import type { Stack } from '../stack.ts'
import type { InboundRequest } from '../uas/inbound-request.ts'
import type { Vias } from '../uas/request-text.ts'
import { forwardedRequest } from './forwarded-text.ts'
import { ResponseContext } from './response-context.ts'
import type { Target } from './target.ts'
import { findWays } from './ways.ts'

const DEFAULT_HOPS = 70

/** What to do with a request that follows our Record-Route. */
export type NextStep =
  | { readonly kind: 'forward'; readonly target: Target; readonly maxForwards: number }
  | { readonly kind: 'too-many-hops' }

/** Undefined: it does not come by a route of ours. `source` is where it came from. */
export function nextStepOf(stack: Stack, request: SipMessage, source: Flow): NextStep | undefined {
  const target = targetOf(stack, request, source)
  if (target === undefined) return undefined
  const hops = request.maxForwards ?? DEFAULT_HOPS
  if (hops === 0) return { kind: 'too-many-hops' }
  return { kind: 'forward', target, maxForwards: hops - 1 }
}

/** Forwards a request that has a server transaction of its own. */
export function forwardInDialog(
  stack: Stack,
  inbound: InboundRequest,
  step: Extract<NextStep, { kind: 'forward' }>,
  now: number,
): void {
  const { method, text } = inbound.request
  if (method === 'BYE') tellStop(stack, 'network', 'normal-release', text, now)
  const context = new ResponseContext(stack, inbound, [step.target], {
    maxForwards: step.maxForwards,
    staysInDialog: false,
    added: [],
    isParallel: false,
    followsRedirects: false,
    patience: { provisionalMs: undefined, finalMs: undefined },
  })
  context.start(now)
}

/** The ACK of a 2xx, if it follows our Record-Route. Nobody answers it, so it needs no transaction. */
export function forwardAck(
  stack: Stack,
  ack: SipMessage,
  vias: Vias,
  source: Flow,
  now: number,
): void {
  const step = nextStepOf(stack, ack, source)
  if (step?.kind !== 'forward') return
  const { target, maxForwards } = step
  findWays(stack, target, now, ([way]) => {
    if (way === undefined) return
    const branch = stack.newBranch()
    const { text } = forwardedRequest(ack, {
      uri: target.uri,
      routes: target.routes,
      via: viaOf(way.listener, branch),
      branch,
      vias: vias.lines,
      maxForwards,
      ownRoutes: [],
      added: [],
    })
    stack.send(text, way, '')
  })
}

function targetOf(stack: Stack, request: SipMessage, source: Flow): Target | undefined {
  const { callId } = request
  const routes = [...request.list('Route')]
  let { uri } = request
  // §16.4: a strict router before us has put our entry into the Request-URI and the target behind.
  const last = routes.at(-1)
  if (last !== undefined && stack.ownRoutes.read(uri, callId)) {
    uri = bareUri(last)
    routes.unshift(`<${request.uri}>`)
    routes.pop()
  }
  let isOurs = false
  let way: Flow | undefined
  for (let [first] = routes; first !== undefined; [first] = routes) {
    const own = stack.ownRoutes.read(first, callId)
    if (own === undefined) break
    isOurs = true
    if (own.flow !== undefined && own.flow.connectionId !== source.connectionId) way = own.flow
    routes.shift()
  }
  return isOurs ? { ...nextOf(uri, routes), way } : undefined
}

function nextOf(uri: string, routes: readonly string[]): Target {
  const way = routeBy(routes, uri)
  return { ...way, hop: bareUri(way.hop) }
}
