/** The application is asked before all destinations of a call, and where it has none. Pure. */
import { noCandidate, type End } from '../cdr/end-reason.ts'
import type { Route } from '../inbound/route.ts'
import type { ApplicationCandidate } from './application-runs.ts'

/** The route with the application before its destinations. A refusal holds if it continues. */
export function askedFirst(route: Route, application: ApplicationCandidate | undefined): Route {
  if (application === undefined) return route
  const { direction } = route
  if (route.kind === 'candidates')
    return { ...route, candidates: [application, ...route.candidates] }
  if (!leadsNowhere(route.end)) return route
  return { kind: 'candidates', direction, candidates: [application], otherwise: route.end }
}

/** The product has no destination for the call; any other refusal is meant. */
export const leadsNowhere = (end: End): boolean => end.kind === 'refused' && codes.has(end.code)

const codes: ReadonlySet<string> = new Set([
  'unknown_extension',
  'unknown_agent',
  'extension_unregistered',
  'no_route',
  'no_gateway',
  'no_carrier_price',
  noCandidate.code,
])
