/** What would happen to a call, and why: asked of the same functions as a call, without being one. */
import type { Tariff } from '../journal/call-journal.ts'
import type { Verdict } from './charging.ts'
import type { Direction } from './field-values.ts'

export interface SimulationRequest {
  readonly source: SimulatedSource
  /** As the caller's From would have it: a number or a user. */
  readonly from: string
  /** A number, or `user@host`. */
  readonly to: string
  /** Undefined: a Call-ID of its own. */
  readonly callId: string | undefined
  /** The call is charged at the rates in force then (milliseconds UTC); undefined: now. */
  readonly at: number | undefined
}

export type SimulatedSource =
  | { readonly kind: 'address'; readonly address: string; readonly port: number }
  | { readonly kind: 'carrier'; readonly carrierId: number }
  /** With the right password. */
  | { readonly kind: 'extension'; readonly domain: string; readonly extension: string }

export interface Simulation {
  readonly origin: SimulatedOrigin
  readonly callerNumber: string
  /** As the number rules of its carrier leave it. */
  readonly calledNumber: string
  readonly direction: Direction
  readonly isEmergency: boolean
  readonly payment: SimulatedPayment
  readonly verdict: SimulatedVerdict
  /** In the order in which they would be tried. */
  readonly candidates: readonly SimulatedCandidate[]
  readonly order: CandidateOrder
  /** The dispatcher set that was asked; null: none. */
  readonly setId: number | null
  /** At most `MAX_PASSED_OVER`. */
  readonly passedOver: readonly PassedOverCandidate[]
}

export interface SimulatedOrigin {
  readonly kind: 'trusted' | 'carrier' | 'node' | 'proxy' | 'extension' | 'unknown'
  /** Of the carrier, node or extension. */
  readonly id: number | null
  readonly name: string | null
  /** A proxy has several. Empty: the platform's, or unknown. */
  readonly tenantIds: readonly number[]
}

export type SimulatedVerdict =
  | { readonly kind: 'goes_on' }
  /** `code` as in a record's `denial_code`. */
  | {
      readonly kind: 'refused'
      readonly status: number
      readonly reason: string
      readonly code: string | null
      /** What its sentence is about (`denialText`). */
      readonly detail?: string | undefined
    }
  /** Nothing is answered: the source is banned. */
  | { readonly kind: 'dropped'; readonly code: 'banned' }

export type SimulatedPayment =
  /** The call ends before a wallet is asked. */
  | { readonly kind: 'not_asked' }
  /** Emergencies and calls inside a tenant cost nothing. */
  | { readonly kind: 'free' }
  /** Only an OCS elsewhere knows; routes are those of a caller without a customer. */
  | { readonly kind: 'elsewhere' }
  | {
      readonly kind: 'asked'
      /** `unreachable`: records cannot be stored now. */
      readonly verdict: Verdict['kind']
      /** As in a record's `denial_code`; null: it is granted. */
      readonly code: string | null
      /** Null: nothing is paid, or it is not known who would pay. */
      readonly payer: { readonly customerId: number; readonly tenantId: number | null } | null
      /** In force then; null: there is no price. */
      readonly tariff: Tariff | null
      /** How long the call could last; Infinity: without limit. 0: it is denied. */
      readonly longestSeconds: number
    }

export interface SimulatedCandidate {
  readonly kind: 'node' | 'gateway' | 'agent' | 'extension' | 'domain'
  readonly uri: string
  /** Of the carrier or agent, or the extension. */
  readonly name: string | null
  /** Of the node, carrier or agent. */
  readonly id: number | null
  /** As it would be sent there; null: as dialled. */
  readonly number: string | null
  /** By which outbound route. */
  readonly route: string | null
  /** Of an extension. */
  readonly phones: number | null
  /** Where a least-cost route has a price: a call of one minute. */
  readonly minuteMicros: number | null
  /** Of many such calls, the part that is sent here first; 0 to 1. */
  readonly share: number
  /** Why nothing would be sent there, as a record's `denial_code`; null: it is tried. */
  readonly withheld: string | null
}

/**
 * `fixed`: always this one. `turn`: the next call's; others come first in turn. `drawn`: one of several, by chance.
 * `call_id`: that of this Call-ID.
 */
export type CandidateOrder = 'fixed' | 'turn' | 'drawn' | 'call_id'

export const passedOverReasons = [
  'drained',
  'out_of_service',
  'node_limit',
  'other_caller',
  'after_block',
  'no_carrier',
  'blocked_by_carrier',
  'carrier_limit',
  'number_blocked',
  'number_stripped',
  'inbound_only',
  'gateway_down',
  'leads_to_platform',
] as const

export interface PassedOverCandidate {
  readonly kind: 'node' | 'route' | 'gateway'
  readonly name: string
  readonly uri: string | null
  /** Whose it is; null: the platform's. */
  readonly tenantId: number | null
  readonly why: (typeof passedOverReasons)[number]
}

/** More of them are left out: a platform may have a route for each customer. */
export const MAX_PASSED_OVER = 50
