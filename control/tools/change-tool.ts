/**
 * Defines a tool that changes something: it tells what it would do (`dry_run`), who asks for it and why is entered, it can
 * be undone where that is possible, and it may end by itself (`duration`).
 */
import { z } from 'zod'
import { timeToText } from '../../schema/columns.ts'
import { type ChangeOrder, type MadeChange, makeChange } from '../changes/make-change.ts'
import type { Plan } from '../changes/plan.ts'
import { text } from '../provisioning/fields.ts'
import { newUuid } from '../uuid.ts'
import { defineTool, type Tool, type ToolSpec, type ToolUse } from './tool.ts'

/** One call of a changing tool. */
export interface ChangeUse extends ToolUse {
  /** A new UUID: what the change adds may be named by it. */
  readonly changeId: string
  readonly reason: string | null
  /** Milliseconds UTC; null: until it is undone. */
  readonly expiresAt: number | null
}

interface ChangeSpec<I extends z.ZodObject, O extends z.ZodObject> extends Omit<
  ToolSpec<I, O>,
  'effect' | 'run'
> {
  readonly effect: 'changes' | 'destroys'
  /** The tools of the specification are called without one, too. */
  readonly reason: 'required' | 'optional'
  /** It may end by itself: the platform undoes it then. */
  readonly expires?: true
  /**
   * What the call would do; throws an `ApiError` that says what to do next. It changes nothing: a dry run ends with it,
   * and a call may need it twice.
   */
  readonly plan: (
    input: z.output<I>,
    use: ChangeUse,
  ) => Promise<Plan<z.input<O>>> | Plan<z.input<O>>
}

const MIN_DURATION_SECONDS = 60
/** Thirty days. */
const MAX_DURATION_SECONDS = 2_592_000

/** Why a change is made: it is stored, and shown with the change later. */
export const changeReason = text(500)
  .min(3)
  .refine((value) => value.trim().length >= 3, 'must have at least 3 characters')
  .describe('Why, in 3 to 500 characters; it is stored with the change.')

export const changeDuration = z
  .int()
  .min(MIN_DURATION_SECONDS)
  .max(MAX_DURATION_SECONDS)
  .describe('Seconds after which the platform undoes it. Absent: until it is undone.')

const changeInput = z.object({
  dry_run: z.boolean().default(false).describe('True: tells the effect, and changes nothing.'),
  reason: changeReason.optional(),
  duration: changeDuration.optional(),
})

const changeOutput = {
  dry_run: z.boolean(),
  changed: z.boolean().describe('False: it was so already. In a dry run: whether it would change.'),
  change_id: z.string().nullable().describe('For undo_change; null when nothing was changed.'),
  effect: z.string(),
  affected: z.record(z.string(), z.number()),
  previous_state: z.unknown(),
  undo: z.string().describe('How it is undone, or that it cannot be.'),
  expires_at: z.string().nullable().describe('When the platform undoes it.'),
}

export function defineChange<I extends z.ZodObject, O extends z.ZodObject>(
  spec: ChangeSpec<I, O>,
): Tool {
  const { name, reason, expires, plan, ...rest } = spec
  const fields = changeInput.shape
  const input: z.ZodObject = spec.input.extend({
    dry_run: fields.dry_run,
    reason: reason === 'required' ? changeReason : fields.reason,
    ...(expires === true && { duration: fields.duration }),
  })
  const output: z.ZodObject = spec.output.extend(changeOutput)
  return defineTool({
    ...rest,
    ...{ name, input, output },
    async run(given, tool) {
      const use = useOf(changeInput.parse(given), tool)
      const order: ChangeOrder = { ...use, tool: name, scopes: spec.scopes }
      // It was checked against a schema that extends that of the tool.
      const own = given as z.output<I>
      const made = await makeChange(order, async () => plan(own, use), tool)
      const { before, after } = made.plan
      if (made.changeId !== null) tool.changed({ before, after })
      return { ...made.own, ...answerOf(made) }
    },
  })
}

function useOf({ dry_run, reason, duration }: z.output<typeof changeInput>, use: ToolUse) {
  return {
    ...use,
    isDryRun: dry_run,
    reason: reason ?? null,
    changeId: newUuid(use.randomBytes),
    expiresAt: duration === undefined ? null : use.now() + duration * 1_000,
  }
}

/** The fields of an answer that all changes have. */
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
