/** The fields that the answers of all changes have, in tools and in the API. */
import { z } from 'zod'
import { timeToText } from '../../schema/columns.ts'
import type { MadeChange } from './make-change.ts'

export const changeOutput = {
  dry_run: z.boolean(),
  changed: z.boolean().describe('False: it was so already. In a dry run: whether it would change.'),
  change_id: z.string().nullable().describe('For undo_change; null when nothing was changed.'),
  effect: z.string(),
  affected: z.record(z.string(), z.number()),
  previous_state: z.unknown(),
  undo: z.string().describe('How it is undone, or that it cannot be.'),
  expires_at: z.string().nullable().describe('When the platform undoes it.'),
}

export function answerOf({ plan, isDryRun, isChanged, changeId, expiresAt }: MadeChange<unknown>) {
  return {
    dry_run: isDryRun,
    changed: isChanged,
    change_id: changeId,
    effect: plan.effect,
    affected: { ...plan.affected },
    previous_state: plan.before,
    undo: undoOf(plan.undo, isChanged, changeId),
    expires_at: expiresAt === null ? null : timeToText(expiresAt),
  }
}

function undoOf(undo: 'restores' | 'none', isChanged: boolean, changeId: string | null): string {
  if (!isChanged) return 'Nothing to undo'
  if (undo === 'none') return 'It cannot be undone'
  return changeId === null
    ? 'undo_change, with the change_id of the real call'
    : `undo_change with change_id ${changeId}`
}
