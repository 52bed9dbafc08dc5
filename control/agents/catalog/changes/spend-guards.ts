/** Tools that brake calls to a prefix, and take the brake off. */
import { requestScope } from '../../../auth/tenants.ts'
import { z } from 'zod'
import { guardBody } from '../../../resources/guards/guard-body.ts'
import { planGuard, planRemoval } from '../../../resources/guards/guard-plan.ts'
import { guardView } from '../../../resources/guards/guard-view.ts'
import { guardQuestion, listGuards } from '../../../resources/guards/list-guards.ts'
import { defineChange } from '../../change-tool.ts'
import { defineTool } from '../../tool.ts'
import { chargingOf } from '../money-tools.ts'
import { MAX_ROWS } from '../shapes.ts'

export const setSpendGuard = defineChange({
  name: 'set_spend_guard',
  title: 'Set a spend guard',
  description:
    'Stops (block) or limits (cap) what a customer, an extension or a tenant spends on numbers with a prefix, from the next call, on all nodes. ' +
    'Emergency calls go on. Live calls go on, and count on a cap, unless end_live_calls is true. ' +
    'The first step against an expensive destination: do a dry run, set it with a duration, and tell a person. remove_spend_guard or undo_change takes it off.',
  effect: 'changes',
  reason: 'required',
  expires: true,
  scopes: ['guard:write'],
  input: guardBody,
  output: z.object({ guard: guardView }),
  plan: (body, use) => planGuard(body, { ...use, ocs: chargingOf(use) }),
})

export const removeSpendGuard = defineChange({
  name: 'remove_spend_guard',
  title: 'Remove a spend guard',
  description: 'Takes a spend guard off. list_spend_guards shows them. Repeating it has no effect.',
  effect: 'changes',
  reason: 'required',
  scopes: ['guard:write'],
  input: z.strictObject({ guard_id: z.uuid() }),
  output: z.object({ guard: guardView }),
  plan: ({ guard_id: guardUuid }, use) =>
    planRemoval(guardUuid.toLowerCase(), { ...use, ocs: chargingOf(use) }),
})

export const listSpendGuards = defineTool({
  name: 'list_spend_guards',
  title: 'List spend guards',
  description:
    'Lists the spend guards, the newest first, with what was used of each cap. Give customer, extension or tenant for those of one.',
  effect: 'reads',
  scopes: ['guard:read'],
  input: guardQuestion.extend({
    state: z.enum(['active', 'all']).default('active').describe('all: of the last 30 days, too.'),
    limit: z.int().min(1).max(MAX_ROWS).default(50),
  }),
  output: z.object({ guards: z.array(guardView), total: z.int() }),
  async run({ state, limit, ...asked }, use) {
    chargingOf(use)
    const slice = { limit, offset: 0, isWithEnded: state === 'all' }
    const { store, principal, now } = use
    const { guards, total } = await listGuards(store, asked, slice, requestScope(principal, now))
    return { guards: [...guards], total }
  },
})
