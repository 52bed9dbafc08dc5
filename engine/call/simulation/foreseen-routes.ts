/**
 * Routing and dispatcher as a simulated call asks them: the same answers, but no turn is taken and no limit
 * filled. What takes no part is noted.
 */
import type { CandidateOrder, PassedOverCandidate } from '../../../schema/contracts/simulation.ts'
import type { Dispatcher } from '../../dispatcher/dispatcher.ts'
import type { Registrar } from '../../registrar/registrar.ts'
import type { Routing } from '../../routing/routing.ts'
import type { Destination, RouteDeps } from '../inbound/route.ts'

/** What decides on real calls. */
export interface Engines extends Omit<RouteDeps, 'routing' | 'dispatcher' | 'registrar'> {
  readonly routing: RouteDeps['routing'] &
    Pick<Routing, 'recognize' | 'carrierOrigin' | 'hasRoom' | 'limitOf' | 'outboundCandidates'>
  readonly dispatcher: RouteDeps['dispatcher'] & Pick<Dispatcher, 'foreseen' | 'selection'>
  readonly registrar: RouteDeps['registrar'] & Pick<Registrar, 'extensionAt'>
}

/** By destination: the part of many such calls that is sent there first. */
type Shares = ReadonlyMap<Destination, number>

export interface ForeseenRoutes {
  readonly routes: RouteDeps
  /** The dispatcher set that was asked. */
  readonly setId: () => number | null
  readonly passedOver: () => readonly PassedOverCandidate[]
  readonly sharesOf: (candidates: readonly Destination[]) => Shares
  readonly order: (candidates: readonly Destination[], shares: Shares) => CandidateOrder
  readonly nodeName: (setId: number, nodeId: number) => string | null
}

/** The most probable order: of equal preference, the greatest weight first. */
const likely = (): number => 0.5
/** Draws among gateways: their parts are estimates. */
const DRAWS = 200

export function foreseenRoutes(engines: Engines): ForeseenRoutes {
  const { routing, dispatcher } = engines
  const passed: PassedOverCandidate[] = []
  let setId: number | null = null
  let asked: readonly [number | null, string, number | null] | undefined
  const routes: RouteDeps = {
    ...engines,
    routing: {
      inboundNumber: (...question) => routing.inboundNumber(...question),
      dialledNumber: (number) => routing.dialledNumber(number),
      sentNumbers: (...question) => routing.sentNumbers(...question),
      registeredUser: (origin) => routing.registeredUser(origin),
      inboundTarget: (...question) => routing.inboundTarget(...question),
      isEmergencyNumber: (number) => routing.isEmergencyNumber(number),
      agent: (agentId) => routing.agent(agentId),
      dialledAgent: (...question) => routing.dialledAgent(...question),
      knowsNumber: (...question) => routing.knowsNumber(...question),
      outboundCandidates: (customerId, number, tenantId) => {
        const question = [customerId, number, tenantId ?? null] as const
        asked = question
        // An emergency is asked about twice, at most.
        passed.length = 0
        const passOver = (each: PassedOverCandidate) => void passed.push(each)
        return routing.outboundCandidates(...question, { random: likely, passOver })
      },
    },
    dispatcher: {
      candidates: (id, callId) => {
        setId = id
        return dispatcher.foreseen(id, callId, likely)
      },
      isAtCapacity: (id) => dispatcher.isAtCapacity(id),
      setRecord: (id) => dispatcher.setRecord(id),
      reportOutcome: () => undefined,
    },
  }
  const nodes = () => (setId === null ? [] : dispatcher.selection(setId))

  const idleNodes = (): readonly PassedOverCandidate[] => {
    const tenantId = setId === null ? null : (dispatcher.setRecord(setId)?.tenantId ?? null)
    return nodes().flatMap(({ destination: uri, why }) =>
      why === null ? [] : [{ kind: 'node', name: uri, uri, tenantId, why }],
    )
  }

  const drawn = (): ReadonlyMap<number, number> => {
    const firsts = new Map<number, number>()
    const question = asked
    if (question === undefined) return firsts
    const random = evenDraws()
    for (let draw = 0; draw < DRAWS; draw += 1) {
      const look = { random, passOver: () => undefined }
      const decision = routing.outboundCandidates(...question, look)
      const [first] = decision.kind === 'gateways' ? decision.gateways : []
      if (first) firsts.set(first.gatewayId, (firsts.get(first.gatewayId) ?? 0) + 1 / DRAWS)
    }
    return firsts
  }

  return {
    routes,
    setId: () => setId,
    passedOver: () => [...passed, ...idleNodes()],
    sharesOf: (candidates) => {
      if (candidates.length < 2) return new Map(candidates.map((candidate) => [candidate, 1]))
      const shares = candidates.some(({ kind }) => kind === 'gateway')
        ? drawn()
        : new Map(nodes().map(({ nodeId, share }) => [nodeId, share]))
      return new Map(candidates.map((each) => [each, shares.get(idOf(each)) ?? 0]))
    },
    order: (candidates, shares) => {
      const isCertain = candidates.every((candidate) => (shares.get(candidate) ?? 0) % 1 === 0)
      if (isCertain) return 'fixed'
      return setId === null ? 'drawn' : orders[dispatcher.setRecord(setId)?.algorithm ?? 6]
    },
    nodeName: (id, nodeId) =>
      dispatcher.selection(id).find((node) => node.nodeId === nodeId)?.destination ?? null,
  }
}

const orders: Readonly<Record<0 | 4 | 6 | 8 | 9, CandidateOrder>> = {
  0: 'call_id',
  4: 'turn',
  6: 'drawn',
  8: 'turn',
  9: 'turn',
}

function idOf(destination: Destination): number {
  if (destination.kind === 'gateway') return destination.gatewayId
  return destination.kind === 'node' ? destination.nodeId : 0
}

/** The fractions of multiples of the golden ratio: they fill [0, 1) evenly, and always in the same way. */
function evenDraws(): () => number {
  let point = 0
  return () => {
    point = (point + 0.618_033_988_749_895) % 1
    return point
  }
}
