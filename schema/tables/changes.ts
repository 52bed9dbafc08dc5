/** Changes that can be undone, as `control/changes` writes them. */
import type { Id } from './kinds.ts'

/**
 * `pending`: it is being made. `unconfirmed`: the process ended while it was made, and nothing says whether it was.
 * `superseded`: its time ran out after a later change of the same target.
 */
export const changeStates = [
  ...(['pending', 'made', 'unconfirmed'] as const),
  ...(['undone', 'expired', 'superseded'] as const),
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
