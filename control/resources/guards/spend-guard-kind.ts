/** Spend guards, as changes are about them. Their id is their UUID. */
import type { Json, RestorableKind } from '../../changes/kinds.ts'
import { z } from 'zod'
import { guardActions, guardPeriods } from '../../../schema/contracts/spend-guards.ts'
import { notFound } from '../../http/api-error.ts'
import { noun, refuseForeign } from './guard-rights.ts'
import { type GuardState, GuardStore } from './guard-store.ts'

export const spendGuardKind: RestorableKind = {
  isRow: true,
  read: async (id, { store }) => {
    const state = await new GuardStore(store).state(id)
    return state && { ...state }
  },
  async restore(id, state, { store, now }) {
    const guards = new GuardStore(store)
    if (state === null) return guards.end(id, 'undo', now())
    const guard = guardIn(state)
    if (!(await guards.isOwned(guard))) throw notFound(noun)
    await guards.put(id, guard, now())
  },
  admit(_, { from, to }, principal) {
    for (const state of [from, to]) if (state !== null) refuseForeign(guardIn(state), principal)
    return Promise.resolve()
  },
  follow: async ({ ocs }) => ocs?.reloadSpendGuards(),
}

const id = z.int().nullable()

/** As `GuardStore.state` gave it. */
const stored: z.ZodType<GuardState> = z.strictObject({
  customer_id: id,
  extension_id: id,
  tenant_id: id,
  set_by_tenant_id: id,
  prefix: z.string(),
  action: z.enum(guardActions),
  amount_micros: z.int(),
  currency: z.string().nullable(),
  per: z.enum(guardPeriods).nullable(),
  reason: z.string(),
  created_by: z.string(),
  created_at: z.int(),
  expires_at: id,
  ends_calls_before: id,
})

const guardIn = (state: Json): GuardState => stored.parse(state)
