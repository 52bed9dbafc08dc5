/** Tools that price past calls anew by a rate plan that was corrected. */
import { z } from 'zod'
import { prefix, reference, time as timeInput } from '../../http/fields.ts'
import { ApiError } from '../../http/api-error.ts'
import { requestScope } from '../../auth/tenants.ts'
import { planRerating } from '../../resources/reratings/rerating-plan.ts'
import { listReratings as jobsOf } from '../../resources/reratings/rerating-store.ts'
import {
  counted,
  jobFields,
  jobOf,
  reratingKinds,
} from '../../resources/reratings/rerating-view.ts'
import type { Reratings } from '../../resources/reratings/reratings.ts'
import { chargingOf } from './customers.ts'
import {
  defineChange,
  defineTool,
  endOfPage,
  MAX_ROWS,
  pageInput,
  pageOutput,
  sliceOf,
  type ToolUse,
} from './tool.ts'

/** `changed` says of every change whether it is one. */
const { changed, ...sums } = counted

export const rerateCalls = defineChange({
  name: 'rerate_calls',
  title: 'Price past calls anew',
  description:
    'Prices past calls anew by a corrected rate plan. Of what was sold, wallets get or pay the ' +
    'difference; bought is what its carriers take. A dry run says how many calls and how much. ' +
    'It is a job: list_reratings shows how far it is; once it is done, undo_change takes it back.',
  effect: 'changes',
  reason: 'required',
  scopes: ['rates:write', 'wallets:write'],
  input: z.strictObject({
    kind: z.enum(reratingKinds),
    rate_plan: reference.describe('Id or name.'),
    from: timeInput.describe('Calls that began since then.'),
    to: timeInput.describe('Exclusive.'),
    customer: reference.optional().describe('Absent: all of the plan.'),
    carrier: reference.optional().describe('For bought. Absent: all of the plan.'),
    prefix: prefix.optional().describe('Called numbers that begin with it.'),
    prices: z
      .enum(['at_call', 'now'])
      .optional()
      .describe('The price that the plan has for the time of the call (default), or now.'),
  }),
  output: z.object({
    rerating_id: z.int().nullable().describe('Null: it has not begun.'),
    complete: z.boolean().describe('False: only the first 200,000 records were looked at.'),
    records: z.int(),
    changed_calls: changed,
    ...sums,
  }),
  plan({ kind, rate_plan, from, to, customer, carrier, prefix: begin, prices }, use) {
    const order = {
      kind,
      plan: rate_plan,
      from,
      before: to,
      customer: customer ?? null,
      carrier: carrier ?? null,
      prefix: begin ?? '',
      prices: prices ?? 'at_call',
    }
    return planRerating(order, { ...use, reratings: reratingsOf(use) })
  },
})

function reratingsOf(use: ToolUse): Reratings {
  chargingOf(use)
  if (use.reratings !== undefined) return use.reratings
  throw new ApiError(503, 'not_ready', 'Re-ratings have not started yet. Retry in a moment')
}

export const listReratings = defineTool({
  name: 'list_reratings',
  title: 'List re-ratings',
  description: 'Lists jobs of rerate_calls, how far each is and what it changed. The newest first.',
  effect: 'reads',
  scopes: ['rates:read'],
  input: z.strictObject(pageInput(MAX_ROWS, 20)),
  output: z.object({ reratings: z.array(z.object(jobFields)), ...pageOutput }),
  async run(page, use) {
    chargingOf(use)
    const { store, principal, now } = use
    const scope = requestScope(principal, now)
    const { rows, total } = await jobsOf(store, scope, undefined, sliceOf(page))
    return { reratings: rows.map(jobOf), ...endOfPage(page, rows.length, total) }
  },
})
