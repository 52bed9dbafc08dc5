/** Carriers that a hook has chosen, and to which no outbound route leads the number. Pure. */
import type { ChosenCarriers, Route } from '../inbound/route.ts'

/** How carriers that a hook has chosen take no part in a call. */
export interface LeftOut {
  /** One sentence without its stop. */
  readonly why: string
  /** None of them is left: the call is refused. */
  readonly isAll: boolean
}

/** Undefined: all of them may be tried, or none for a reason that passes by itself. */
export function leftOut(
  { carrierIds, chosenBy }: ChosenCarriers,
  route: Route,
): LeftOut | undefined {
  if (route.kind === 'refused')
    return route.end.kind === 'refused' && route.end.code === 'no_route'
      ? { why: 'no outbound route leads the number to one of its carriers', isAll: true }
      : undefined
  const tried = new Set(
    route.candidates.map((each) => (each.kind === 'gateway' ? each.carrierId : undefined)),
  )
  const missing = carrierIds.flatMap((carrierId, index) =>
    tried.has(carrierId) ? [] : [String(chosenBy?.names[index] ?? carrierId)],
  )
  if (missing.length === 0) return undefined
  const [one, ...others] = missing
  const who =
    others.length === 0 ? `the carrier ${one} is` : `the carriers ${missing.join(', ')} are`
  return {
    why: `${who} left out: no outbound route leads the number to a gateway there that takes calls`,
    isAll: false,
  }
}
