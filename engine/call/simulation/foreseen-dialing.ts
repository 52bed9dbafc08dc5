/** What would be sent to the candidates of a simulated call, and its end where nothing would be. */
import type { SimulatedCandidate } from '../../../schema/contracts/simulation.ts'
import { afterResult, isUntaken, resultOfPhones } from '../call-machine/failover.ts'
import type { AttemptResult } from '../call-machine/state.ts'
import { noCandidate, type End } from '../cdr/end-reason.ts'
import { inviteFor, type Callee, type OutgoingCall } from '../dialing/outgoing-invite.ts'
import { withheld, type WithheldDeps } from '../dialing/withheld.ts'
import type { ExtensionDestination } from '../inbound/extension-route.ts'
import type { Destination } from '../inbound/route.ts'
import type { HeaderFilter } from '../sip/headers.ts'

export interface ForeseenDialing {
  readonly candidates: readonly SimulatedCandidate[]
  /** Undefined: an INVITE is sent, and its answer decides. */
  readonly end: End | undefined
}

interface DialingDeps extends WithheldDeps {
  readonly filter: HeaderFilter
}

/** As `call-machine/dialing.ts` tries them, up to the first INVITE that is sent. */
export function foreseeDialing(
  destinations: readonly Destination[],
  shares: ReadonlyMap<Destination, number>,
  invite: OutgoingCall,
  deps: DialingDeps,
): ForeseenDialing {
  const judged = destinations.map((destination) => ({
    destination,
    result: resultWithout(destination, invite, deps),
  }))
  const candidates = judged.map(({ destination, result }) => ({
    ...described(destination),
    share: shares.get(destination) ?? 0,
    withheld: result === undefined ? null : codeOf(result),
  }))
  let last: End = noCandidate
  for (const { result } of judged) {
    if (result === undefined) return { candidates, end: undefined }
    const after = afterResult(result, last)
    last = after.last
    if (after.isLast) break
  }
  return { candidates, end: last }
}

/** How an attempt ends without an INVITE; undefined: one is sent. */
function resultWithout(
  destination: Destination,
  invite: OutgoingCall,
  deps: DialingDeps,
): AttemptResult | undefined {
  if (destination.kind === 'extension') return withheldPhones(destination, invite, deps)
  return withheldFrom(destination, invite, deps)
}

function withheldPhones(
  extension: ExtensionDestination,
  invite: OutgoingCall,
  deps: DialingDeps,
): AttemptResult | undefined {
  const { phones, voicemail } = extension
  const results = phones.map((phone) => withheldFrom(phone, invite, deps))
  if (results.some((result) => result === undefined)) return undefined
  const sent = results.flatMap((result) => result ?? [])
  const best = resultOfPhones(extension, sent)
  const isForVoicemail = voicemail !== undefined && isUntaken(best)
  return isForVoicemail && withheldFrom(voicemail, invite, deps) === undefined ? undefined : best
}

function withheldFrom(
  callee: Callee,
  invite: OutgoingCall,
  deps: DialingDeps,
): AttemptResult | undefined {
  const refusal = withheld(callee, inviteFor(callee, invite, deps.filter), invite, deps)
  return refusal && { kind: 'withheld', end: refusal.end }
}

const codeOf = (result: AttemptResult): string =>
  result.kind === 'withheld' ? result.end.code : 'extension_unregistered'

type Described = Omit<SimulatedCandidate, 'share' | 'withheld'>

const plain = { name: null, id: null, number: null, route: null, phones: null, minuteMicros: null }

function described(destination: Destination): Described {
  const { uri } = destination
  switch (destination.kind) {
    case 'gateway': {
      const { carrierName: name, carrierId: id, number, routeName: route, price } = destination
      const minuteMicros = price?.minuteMicros ?? null
      return { ...plain, kind: 'gateway', uri, name, id, number, route, minuteMicros }
    }
    case 'agent':
      return { ...plain, kind: 'agent', uri, name: destination.name, id: destination.agentId }
    case 'extension': {
      const phones = destination.phones.length
      return { ...plain, kind: 'extension', uri, name: uri.slice('sip:'.length), phones }
    }
    case 'node':
      return { ...plain, kind: 'node', uri, id: destination.nodeId }
    case 'domain':
    case 'spy':
    case 'listener':
    case 'other-node':
    default:
      return { ...plain, kind: 'domain', uri }
  }
}
