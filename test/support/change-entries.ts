/** Entries of the list of changes, as the API writes them. */
import type { NewChangeEntry } from '../../control/changes/change-store.ts'

export const changeEntry = (
  columns: Partial<NewChangeEntry> & Pick<NewChangeEntry, 'change_id'>,
): NewChangeEntry => ({
  at: 0,
  actor: 'user:ada',
  actor_name: null,
  tenant_id: null,
  tool: 'PATCH /things',
  scopes: '[]',
  target_kind: 'thing',
  target_id: '7',
  reason: null,
  effect: '',
  undo: 'restores',
  state: 'made',
  state_before: null,
  state_after: null,
  expires_at: null,
  claimed_until: null,
  proposal_id: null,
  ...columns,
})
