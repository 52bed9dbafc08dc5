/** Spend guards as a caller may see them: all, or those of one customer, extension or tenant. */
import type { RequestScope } from '../../auth/tenants.ts'
import type { z } from 'zod'
import type { Store } from '../../../schema/open.ts'
import { readApart } from '../../../schema/sql/read-apart.ts'
import { guardBody } from './guard-body.ts'
import { GuardStore } from './guard-store.ts'
import { targetOf } from './guard-target.ts'
import { type GuardView, viewsOf } from './guard-view.ts'

/** None of `customer`, `extension` and `tenant`: all. */
export const guardQuestion = guardBody.pick({ customer: true, extension: true, tenant: true })

interface Slice {
  readonly limit: number
  readonly offset: number
  /** Also those that expired or were removed in the last 30 days. */
  readonly isWithEnded: boolean
}

interface Listed {
  readonly guards: readonly GuardView[]
  readonly total: number
}

export const listGuards = (
  store: Store,
  asked: z.output<typeof guardQuestion>,
  slice: Slice,
  scope: RequestScope,
): Promise<Listed> => readApart(store, scope.tenantId, () => read(store, asked, slice, scope))

async function read(
  store: Store,
  asked: z.output<typeof guardQuestion>,
  { isWithEnded, ...slice }: Slice,
  scope: RequestScope,
): Promise<Listed> {
  const guards = new GuardStore(store)
  const isOfOne = Object.values(asked).some((named) => named !== undefined)
  const target = isOfOne ? await targetOf(store, { ...asked, prefix: '' }, scope) : undefined
  const filter = {
    ...slice,
    scope: target?.scope,
    scopeId: target?.scopeId,
    isActive: !isWithEnded,
  }
  const { rows, total } = await guards.list(scope.tenantId, filter, scope.now)
  return { guards: await viewsOf(guards, rows, scope.now), total }
}
