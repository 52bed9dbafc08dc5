/** The called side of an admitted call: its route, and its destinations one after the other. */
import type { AttemptResult, BridgeDeps } from '../bridge.ts'
import { Bridge } from '../bridge.ts'
import type { ActiveCalls } from '../active-calls.ts'
import { nowhere, type Call, type Place } from '../call.ts'
import type { Outcome } from '../cascade.ts'
import { cascade, healthShown } from '../cascade.ts'
import type { Caller } from '../legs/caller.ts'
import { callExtension } from '../phones/call-extension.ts'
import type { Reading } from '../inbound/incoming-invite.ts'
import type { ExtensionDestination } from '../inbound/extension-route.ts'
import { routeCall, type Destination, type Route, type RouteDeps } from '../inbound/route.ts'
import type { Headers } from '../srf/drachtio.ts'
import type { FreeRoute } from '../inbound/admission.ts'
import {
  forwardBy,
  forwardOut,
  type Forward,
  type ForwardDeps,
  type Journey,
} from '../forwarding/forward.ts'

export interface ReachDeps extends BridgeDeps, RouteDeps, ForwardDeps {
  readonly calls: ActiveCalls
  /** What a live INVITE told about a carrier's gateway (decisions §3). */
  readonly onGatewayOutcome: (gatewayId: number, outcome: 'answered' | 'failed') => void
}

/** Resolves with the answer, or with why there is none. */
export function reach(
  caller: Caller,
  call: Call,
  reading: Reading,
  { isEmergency, route: free }: FreeRoute,
  deps: ReachDeps,
): Promise<Outcome> {
  const route = free ?? routeCall(reading, call.account, deps)
  call.direction = route.direction
  // An emergency goes out by any way there is.
  const asked = isEmergency ? { ...reading, isSecure: false } : reading
  return travel(route, { caller, call, reading: asked, visited: [] }, isEmergency, deps)
}

/** Along a route; and along the next one, where a phone forwards the call. */
async function travel(
  route: Route,
  journey: Journey,
  isEmergency: boolean,
  deps: ReachDeps,
): Promise<Outcome> {
  const { caller, call, reading } = journey
  call.notes.push({ at: deps.now(), what: 'routed', route })
  if (route.kind === 'refused') return { kind: 'over', end: route.end }

  let onward: (() => Promise<Outcome>) | undefined
  const attempt = (destination: Destination) => {
    if (!place(call, reading, destination, isEmergency, deps)) return undefined
    if (destination.kind !== 'extension') return tryDestination(destination, journey, deps)
    call.destination = destination
    const { uri } = destination
    const here = { ...journey, visited: [...journey.visited, uri] }
    const parties = { call, caller, announced: reading }
    const onRedirect = (headers: Headers): boolean => {
      const forward = forwardBy(destination, headers, here, deps)
      if (forward) onward = () => goOn(forward, uri, here, deps)
      return forward !== undefined
    }
    return callExtension(destination, parties, onRedirect, deps)
  }
  const outcome = await cascade(route.candidates, attempt, () => call.stopped)
  return outcome.kind === 'answered' || call.stopped || !onward ? outcome : onward()
}

function goOn(
  { reading, route }: Forward,
  by: string,
  journey: Journey,
  deps: ReachDeps,
): Promise<Outcome> {
  if (route) return travel(route, { ...journey, reading }, false, deps)
  const reachThen = (caller: Caller, call: Call, read: Reading, free: FreeRoute) =>
    reach(caller, call, read, free, deps)
  return forwardOut(journey, by, reading, reachThen, deps)
}

/** Counts the call where it is tried next. False: the carrier takes no more. */
function place(
  call: Call,
  { origin }: Reading,
  destination: Destination,
  isEmergency: boolean,
  deps: ReachDeps,
): boolean {
  const from: Place =
    origin.kind === 'carrier'
      ? { ...nowhere, carrierId: origin.carrierId, carrier: origin.name }
      : nowhere
  switch (destination.kind) {
    case 'node': {
      const { setId, nodeId, uri } = destination
      deps.calls.place(call, { ...from, setId, nodeId, node: uri })
      return true
    }
    case 'agent':
      deps.calls.place(call, { ...from, agentId: destination.agentId })
      return true
    case 'extension':
    case 'domain':
      deps.calls.place(call, from)
      return true
    case 'gateway':
    default: {
      // First away from where it was tried before, so that it does not stand in its own way.
      deps.calls.place(call, from)
      const { carrierId, carrierName } = destination
      if (!deps.routing.admitCarrierCall(carrierId, isEmergency)) return false
      deps.calls.place(call, { ...from, carrierId, carrier: carrierName })
      return true
    }
  }
}

async function tryDestination(
  destination: Exclude<Destination, ExtensionDestination>,
  { caller, call, reading }: Journey,
  deps: ReachDeps,
): Promise<AttemptResult> {
  call.destination = destination
  const bridge = new Bridge(deps, call, caller, reading, destination.uri)
  const result = await bridge.run(destination)
  call.attempts.push(bridge.record)
  const health = healthShown(result)
  if (health && destination.kind === 'node')
    deps.dispatcher.reportOutcome(destination.nodeId, health)
  if (health && destination.kind === 'gateway') deps.onGatewayOutcome(destination.gatewayId, health)
  return result
}
