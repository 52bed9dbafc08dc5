/** Judges whether a carrier takes calls, and keeps our registration, as this instance sees it. */
import type { CarrierRegistrationStatus, ProbedStatus } from '../../../schema/contracts/engine.ts'
import type { RouteQualityStatus } from '../../../schema/contracts/route-quality.ts'

export type CarrierService =
  | { readonly state: 'up' | 'down'; readonly cause: CarrierCause | null; readonly reason: string }
  /** Nothing says that it is different from before. */
  | { readonly state: 'unknown' }

/** Why a carrier takes no calls, or takes them last. */
type CarrierCause = 'by_hand' | 'no_answer' | 'quality' | 'registration'

const unknown = { state: 'unknown' } as const
const up = { state: 'up', cause: null, reason: '' } as const

/**
 * By hand, by probes of its gateways, by the quality that routes ask of it.
 *
 * @param gateways undefined: it is not probed.
 */
export function serviceOfCalls(
  isActive: boolean,
  gateways: readonly (ProbedStatus | undefined)[],
  qualities: readonly RouteQualityStatus[],
): CarrierService {
  if (!isActive) return { state: 'down', cause: 'by_hand', reason: 'It was taken out by hand' }
  const reached = gateways.map(reachOf)
  const silent = gateways.find((gateway) => reachOf(gateway) === 'down')
  if (silent !== undefined && reached.every((each) => each === 'down'))
    return { state: 'down', cause: 'no_answer', reason: silent.lastProbe?.reason ?? 'no answer' }
  if (reached.length > 0 && !reached.includes('up')) return unknown
  const low = qualities.find(({ state }) => state === 'low')
  if (low !== undefined) {
    const faults = (low.fallen?.faults ?? []).join(', ')
    const reason = `Below the floors of route ${JSON.stringify(low.route)}: ${faults}`
    return { state: 'down', cause: 'quality', reason }
  }
  // It is tried in its place again, until its calls have shown how it is.
  return qualities.some(({ state }) => state === 'trial') ? unknown : up
}

/** A gateway that has never answered a probe may take calls all the same. */
function reachOf(gateway: ProbedStatus | undefined): 'up' | 'down' | 'unknown' {
  if (gateway === undefined) return 'up'
  if (gateway.probes.answered === 0) return 'unknown'
  return gateway.state === 'active' ? 'up' : 'down'
}

export function serviceOfRegistration(
  registration: CarrierRegistrationStatus | undefined,
): CarrierService {
  if (registration?.state === 'registered') return up
  if (registration?.state !== 'failed') return unknown
  const { lastAnswer } = registration
  const reason = lastAnswer === null ? 'no answer' : answerText(lastAnswer)
  return { state: 'down', cause: 'registration', reason }
}

/** Status 0: nobody has answered, and the reason says so. */
export const answerText = ({
  status,
  reason,
}: NonNullable<CarrierRegistrationStatus['lastAnswer']>): string =>
  status === 0 ? reason : `${status} ${reason}`
