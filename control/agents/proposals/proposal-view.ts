/** Proposals as the API, the tools and webhooks show them. */
import type { Json } from '../../changes/kinds.ts'
import { timeToText } from '../../../schema/columns.ts'
import type { ProposalRow } from './proposal-store.ts'

export type ProposalView = ReturnType<typeof proposalView>

export const proposalView = (row: ProposalRow) => ({
  proposal_id: row.uuid,
  at: timeToText(row.at),
  tenant_slug: row.tenant_slug,
  proposed_by: row.actor,
  proposed_by_name: row.actor_name,
  tool: row.tool,
  arguments: argumentsOf(row),
  reason: row.reason,
  effect: row.effect,
  target: row.target,
  affected: JSON.parse(row.affected) as Readonly<Record<string, number>>,
  previous_state: JSON.parse(row.previous_state) as Json,
  undo: row.undo,
  risk: row.risk,
  revision: row.revision,
  state: row.state,
  expires_at: timeToText(row.expires_at),
  decided_at: textOrNull(row.decided_at),
  decided_by: row.decided_by,
  decided_by_name: row.decided_by_name,
  decided_via: row.decided_via,
  note: row.note,
  change_id: row.change_id,
  failure: row.failure,
})

/** Only the store writes them, as an object. */
export const argumentsOf = (row: Pick<ProposalRow, 'arguments'>) =>
  JSON.parse(row.arguments) as Readonly<Record<string, Json>>

const textOrNull = (ms: number | null): string | null => (ms === null ? null : timeToText(ms))
