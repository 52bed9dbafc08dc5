/** What a change would do, as the dry run of its tool tells it. */
import type { Json } from '../../changes/kinds.ts'
import { isDeepStrictEqual } from 'node:util'
import { z } from 'zod'
import type { ChangeEffect } from '../../changes/change.ts'

export interface PlannedChange {
  /** False: it is so already. */
  readonly isChange: boolean
  readonly effect: string
  readonly affected: Readonly<Record<string, number>>
  readonly before: Json
  /** How it is undone, or that it cannot be. */
  readonly undo: string
  readonly isReversible: boolean
  /** What the names in the arguments lead to, by its id: `customer 7`. */
  readonly target: string
}

const told = z.looseObject({
  changed: z.boolean(),
  effect: z.string(),
  affected: z.record(z.string(), z.number()).default({}),
  previous_state: z.json(),
  undo: z.string().default('by the tool that made the change'),
  target: z.string(),
})

export function plannedOf(plan: ChangeEffect): PlannedChange {
  const { effect, affected, before, after, undo } = plan
  const isReversible = undo === 'restores'
  const isChange = !isDeepStrictEqual(before, after)
  const how = isReversible ? 'undo_change' : 'It cannot be undone'
  const target = plan.row ?? `${plan.target.kind} ${plan.target.id}`
  return { isChange, effect, affected, before, undo: how, isReversible, target }
}

/** Of a tool without a plan, such as `undo_change`: what its answer says. It cannot be undone by `undo_change`, and takes off what may be a brake. */
export function plannedIn(answer: unknown): PlannedChange {
  const { changed, previous_state: before, ...rest } = told.parse(answer)
  const { effect, affected, undo, target } = rest
  return { isChange: changed, effect, affected, before, undo, isReversible: false, target }
}
