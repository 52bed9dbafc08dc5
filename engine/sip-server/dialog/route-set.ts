/** Route sets: RFC 3261 §12.2.1.1 in dialogs, §8.1.2 outside, §16.6 step 6 for forwarded requests. */
import { parseUri } from '../message/uri.ts'

export interface RoutedRequest {
  readonly uri: string
  readonly routes: readonly string[]
  /** The URI or Route value that names the next hop. */
  readonly hop: string
}

/**
 * Request-URI, Route and next hop of a request for `uri`. A strict router that comes next stands in the
 * Request-URI; then `uri` goes to the end of the Route.
 */
export function routeBy(routeSet: readonly string[], uri: string): RoutedRequest {
  const [first, ...rest] = routeSet
  if (first === undefined || isLoose(first)) return { uri, routes: routeSet, hop: first ?? uri }
  return { uri: bareUri(first), routes: [...rest, `<${uri}>`], hop: first }
}

const isLoose = (route: string): boolean => parseUri(bareUri(route))?.params.has('lr') ?? false

/** The URI inside `<…>`, or the value itself. */
export function bareUri(value: string): string {
  const open = value.indexOf('<')
  if (open === -1) return value.trim()
  const close = value.indexOf('>', open)
  return value.slice(open + 1, close === -1 ? undefined : close)
}
