/** The tool that undoes what a changing tool did. */
import { z } from 'zod'
import { timeToText } from '../../../../schema/columns.ts'
import { changeReason, dryRun } from '../../../changes/change.ts'
import { stateIn } from '../../../changes/change-store.ts'
import { undoChange as undo } from '../../../changes/undo.ts'
import { defineTool } from '../../tool.ts'
import { time } from '../shapes.ts'

export const undoChange = defineTool({
  name: 'undo_change',
  title: 'Undo a change',
  description:
    'Brings back the state before a change, by the change_id of its answer; what it created is removed for good. Refused with ' +
    'changed_since when something changed the same target later, and with not_reversible for what cannot be undone. Repeating ' +
    'it has no effect. Needs the scopes of the tool that made the change, too.',
  effect: 'destroys',
  scopes: [],
  input: z.strictObject({
    change_id: z.uuid(),
    reason: changeReason,
    dry_run: dryRun,
  }),
  output: z.object({
    change_id: z.string(),
    dry_run: z.boolean(),
    changed: z
      .boolean()
      .describe('False: it was undone before. In a dry run: whether it would be.'),
    effect: z.string(),
    tool: z.string().describe('That made the change.'),
    target: z.string(),
    previous_state: z.unknown(),
    restored_state: z.unknown(),
    undone_at: time.nullable(),
  }),
  async run({ change_id: changeId, reason, dry_run: isDryRun }, use) {
    const order = { principal: use.principal, changeId, reason, isDryRun }
    const { entry, isChanged, effect, state } = await undo(use, order)
    const restored = stateIn(entry.state_before)
    if (isChanged && !isDryRun) use.changed({ before: state, after: restored })
    return {
      change_id: entry.change_id,
      dry_run: isDryRun,
      changed: isChanged,
      effect,
      tool: entry.tool,
      target: `${entry.target_kind} ${entry.target_id}`,
      previous_state: state,
      restored_state: restored,
      undone_at: entry.undone_at === null ? null : timeToText(entry.undone_at),
    }
  },
})
