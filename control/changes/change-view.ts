import { timeToText } from '../../schema/columns.ts'
import { type ChangeEntry, stateIn } from './change-store.ts'
import { lossOf } from './kept-states.ts'

/** A change as the API shows it. */
export const changeView = (entry: ChangeEntry) => ({
  change_id: entry.change_id,
  at: timeToText(entry.at),
  state: entry.state,
  actor: entry.actor,
  actor_name: entry.actor_name,
  tenant_id: entry.tenant_id,
  tool: entry.tool,
  target_kind: entry.target_kind,
  target_id: entry.target_id,
  reason: entry.reason,
  effect: entry.effect,
  before: stateIn(entry.state_before),
  after: stateIn(entry.state_after),
  is_reversible: entry.undo === 'restores',
  is_state_kept: lossOf(entry) === null,
  expires_at: timeOrNull(entry.expires_at),
  undone_at: timeOrNull(entry.undone_at),
  undone_by: entry.undone_by,
  undo_reason: entry.undo_reason,
  proposal_id: entry.proposal_id,
})

export type ChangeView = ReturnType<typeof changeView>

const timeOrNull = (ms: number | null): string | null => (ms === null ? null : timeToText(ms))
