/** Changes that can be undone, as `control/changes` writes them. */
import type { Defaulted, Id } from './kinds.ts'

/**
 * `pending`: it is being made. `unconfirmed`: the process ended while it was made, and nothing says whether it was.
 * `superseded`: its time ran out after a later change of the same target.
 */
export const changeStates = [
  'pending',
  'made',
  'unconfirmed',
  'undone',
  'expired',
  'superseded',
] as const

export type ChangeState = (typeof changeStates)[number]

export interface ChangeEntryTable {
  id: Id
  /** A UUID. */
  change_id: string
  at: number
  /** As in the audit log. */
  actor: string
  /** For a key: its name at that time. */
  actor_name: string | null
  /** In which the actor acted; null for all. */
  tenant_id: number | null
  tool: string
  /** JSON array of the scopes that the tool requires besides those of MCP. */
  scopes: string
  target_kind: string
  target_id: string
  reason: string | null
  effect: string
  /** JSON, without secrets; null: it was not there. */
  state_before: string | null
  state_after: string | null
  undo: 'restores' | 'none'
  expires_at: number | null
  state: ChangeState
  undone_at: number | null
  undone_by: string | null
  undo_reason: string | null
  /** A process is making or undoing the change until then at the latest. */
  claimed_until: number | null
  proposal_id: string | null
}

/** A change that an agent has proposed, and what a person has decided. */
export interface ChangeProposalTable {
  id: Id
  uuid: string
  at: number
  /** In which the change is made; null: the proposal is the platform's. */
  tenant_id: number | null
  /** Of the credential that has proposed it; null: all domains. */
  domain: string | null
  /** Who has proposed it, as in the audit log. */
  actor: string
  /** The name of the key. */
  actor_name: string | null
  tool: string
  /** JSON object, without secrets. */
  arguments: string
  /** SHA-256, base64url, of tool, tenant and arguments: an open proposal is not made twice. */
  arguments_digest: string
  reason: string
  effect: string
  /** JSON object of counts. */
  affected: string
  /** JSON. */
  previous_state: string
  undo: string
  risk: 'low' | 'medium' | 'high'
  /** SHA-256, base64url, of what a person is shown. */
  plan_digest: string
  /** What the names in the arguments led to when it was shown, such as `customer 7`; null: an earlier version showed it. */
  target: Defaulted<string | null>
  /** One more each time when what is shown has changed. */
  revision: Defaulted<number>
  expires_at: number
  state: Defaulted<ProposalState>
  decided_at: number | null
  decided_by: string | null
  decided_by_name: string | null
  decided_via: 'api' | 'link' | null
  /** What the person has written. */
  note: string | null
  /** When the outcome was known; null while an approved change is being made. */
  settled_at: number | null
  /** Null: nothing had to be changed, or nothing was. */
  change_id: string | null
  failure: string | null
}

export type ProposalState = 'open' | 'approved' | 'refused' | 'expired' | 'failed'
