/** What outbound routes say of a call. */
import type { GatewayCandidate } from './gateway-candidate.ts'

export type OutboundDecision =
  | {
      readonly kind: 'gateways'
      /** In the order in which they are tried; never empty. */
      readonly gateways: readonly GatewayCandidate[]
      /** The call skips wallet, limits and drain. */
      readonly isEmergency: boolean
    }
  /** 403. */
  | { readonly kind: 'blocked'; readonly routeName: string }
  /** Every carrier of the routes has reached `max_calls` or `max_cps`: 503 with `Retry-After`. */
  | { readonly kind: 'limited'; readonly limit?: string }
  /** There is a route, but nothing behind it can take a call now: 503. */
  | { readonly kind: 'unavailable' }
  /** No route knows the number. */
  | { readonly kind: 'none' }
