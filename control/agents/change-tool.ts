/**
 * Defines a tool that changes something: it tells what it would do (`dry_run`), who asks for it and why is entered, it can
 * be undone where that is possible, and it may end by itself (`duration`).
 */
import { z } from 'zod'
import { changeDuration, changeReason, dryRun } from '../changes/change-fields.ts'
import { answerOf, changeOutput } from '../changes/change-answer.ts'
import { type ChangeOrder, makeChange } from '../changes/make-change.ts'
import type { Plan } from '../changes/plan.ts'
import { newUuid } from '../http/platform.ts'
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

const changeInput = z.object({
  dry_run: dryRun,
  reason: changeReason.optional(),
  duration: changeDuration.optional(),
})

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
    name,
    input,
    output,
    async run(given, tool) {
      const use = useOf(changeInput.parse(given), tool)
      const order: ChangeOrder = { ...use, tool: name, scopes: spec.scopes }
      // It was checked against a schema that extends that of the tool.
      const own = given as z.output<I>
      const planned = async () => {
        const made = await plan(own, use)
        tool.accept?.(made)
        return made
      }
      const made = await makeChange(order, planned, tool)
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
