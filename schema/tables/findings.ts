/** Findings with their history, and what webhooks are told of carriers and phones. */
import type { Id } from '../columns.ts'

export interface FindingTables {
  finding: FindingTable
  finding_mark: FindingMarkTable
  carrier_service: CarrierServiceTable
  lost_registration: LostRegistrationTable
}

export interface FindingTable {
  id: Id
  /** The owner of its subject; null: the platform. */
  tenant_id: number | null
  /** Kind, subject and prefix: at most one finding of an owner and an identity is open. */
  identity: string
  kind: string
  severity: 'critical' | 'high' | 'medium' | 'low'
  subject: string
  /** JSON: `what`, `advice`, `figures`, `evidence`, `next` and `first_step` of its view. */
  details: string
  first_at: number
  last_at: number
  /** The change in force that deals with it. */
  handled_change_id: string | null
  opened_at: number
  /** Since when searches do not find it any more; null: the last one did. */
  missed_since: number | null
  closed_at: number | null
}

export type FindingSide = 'platform' | 'tenant'

export interface FindingMarkTable {
  finding_id: number
  /** Who has marked it: the platform and the tenant do so apart from each other. */
  side: FindingSide
  state: 'acknowledged' | 'snoozed'
  /** End of a snooze. */
  until: number | null
  note: string | null
  actor: string
  actor_name: string | null
  at: number
}

export interface CarrierServiceTable {
  carrier_id: number
  /** It takes calls, or keeps our registration. */
  service: 'calls' | 'registration'
  state: 'up' | 'down'
  since: number
}

export interface LostRegistrationTable {
  id: Id
  tenant_id: number
  extension_id: number
  domain: string
  extension: string
  contact: string
  reason: 'expired' | 'connection_closed'
  at: number
}
