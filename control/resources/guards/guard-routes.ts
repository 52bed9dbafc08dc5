/** `/spend-guards`: brakes on calls to a prefix. The tools `set_spend_guard` and others do the same. */
import type { ChangeDeps } from '../../changes/kinds.ts'
import { type Context, Hono } from 'hono'
import { z } from 'zod'
import type { OcsPort } from '../../../schema/contracts/ocs.ts'
import {
  answerOf,
  changeDuration,
  type ChangeOrder,
  changeReason,
  dryRun,
  type MadeChange,
  change,
  type Plan,
  recordChange,
} from '../../changes/change.ts'
import { requires } from '../../auth/requires.ts'
import type { ControlEnv } from '../../http/control-env.ts'
import { created, offsetOf, ok, pageMeta, pageQuery } from '../../http/envelope.ts'
import { notFound } from '../../http/api-error.ts'
import { validate } from '../../http/validate.ts'
import type { OtherNodes } from '../../nodes/other-nodes.ts'
import { reference } from '../../http/fields.ts'
import { newUuid } from '../../http/platform.ts'
import { guardBody } from './guard-body.ts'
import { type GuardUse, planGuard, planRemoval } from './guard-plan.ts'
import { noun } from './guard-rights.ts'
import { GuardStore } from './guard-store.ts'
import { type GuardView, viewsOf } from './guard-view.ts'
import { listGuards } from './list-guards.ts'
import { requestScope } from '../../auth/tenants.ts'

export interface GuardRoutesDeps extends Omit<ChangeDeps, 'ocs'> {
  readonly ocs: OcsPort
  readonly others?: OtherNodes | undefined
}

const path = '/spend-guards'
const scopes = ['guard:write'] as const

const ofChange = {
  reason: changeReason,
  dry_run: dryRun,
}
const newGuard = guardBody.extend({ ...ofChange, duration: changeDuration.optional() })
const removal = z.strictObject({
  reason: changeReason.default('removed by API'),
  dry_run: z.enum(['true', 'false']).default('false'),
})
/** A number in the query is an id. */
const inQuery = z
  .string()
  .max(300)
  .transform((text) => (/^[1-9]\d{0,14}$/.test(text) ? Number(text) : text))
  .pipe(reference)
const listQuery = z.strictObject({
  ...pageQuery,
  customer: inQuery.optional(),
  extension: z.string().max(300).optional(),
  tenant: inQuery.optional(),
  state: z.enum(['active', 'all']).default('active'),
})
const oneGuard = z.strictObject({
  guard_id: z.string().transform((text, context) => {
    if (z.uuid().safeParse(text).success) return text.toLowerCase()
    context.addIssue({ code: 'custom', message: 'must be a UUID' })
    return z.NEVER
  }),
})

export function guardRoutes(deps: GuardRoutesDeps) {
  const { store, now, others } = deps

  /** Plans, makes and enters the change; a dry run only plans. */
  async function changed(
    c: Context<ControlEnv>,
    {
      tool,
      reason,
      isDryRun,
      expiresAt,
    }: Required<Pick<ChangeOrder, 'tool' | 'reason' | 'isDryRun' | 'expiresAt'>>,
    plan: (use: GuardUse) => Promise<Plan<{ readonly guard: GuardView }>>,
  ): Promise<MadeChange<{ readonly guard: GuardView }>> {
    const { principal } = c.var
    const changeId = newUuid(deps.randomBytes)
    const order = { principal, tool, scopes, reason, isDryRun, changeId, expiresAt }
    const elsewhere = others?.of(c)
    const use = { ...deps, principal, changeId, reason, expiresAt, elsewhere }
    const made = await change(deps, order, () => plan(use))
    const { before, after } = made.plan
    if (made.changeId !== null) recordChange(c, made.changeId, { before, after }, reason)
    return made
  }

  return new Hono<ControlEnv>()
    .get(path, requires('guard:read'), validate('query', listQuery), async (c) => {
      const { page, limit, state, ...asked } = c.req.valid('query')
      const slice = { limit, offset: offsetOf({ page, limit }), isWithEnded: state === 'all' }
      const scope = requestScope(c.var.principal, now)
      const { guards, total } = await listGuards(store, asked, slice, scope)
      return ok(c, guards, pageMeta({ page, limit }, total))
    })

    .get(`${path}/:guard_id`, requires('guard:read'), validate('param', oneGuard), async (c) => {
      const guards = new GuardStore(store)
      const { tenantId } = c.var.principal
      const row = await guards.find(tenantId, c.req.valid('param').guard_id)
      const [view] = row === undefined ? [] : await viewsOf(guards, [row], now())
      if (view === undefined) throw notFound(noun)
      return ok(c, view)
    })

    .post(path, requires('guard:write'), validate('json', newGuard), async (c) => {
      const { reason, duration, dry_run: isDryRun, ...body } = c.req.valid('json')
      const expiresAt = duration === undefined ? null : now() + duration * 1_000
      const order = { tool: 'set_spend_guard', reason, isDryRun, expiresAt }
      const made = await changed(c, order, (use) => planGuard(body, use))
      const location = `/api/v1${path}/${made.own.guard.guard_id}`
      return created(c, location, { ...made.own, ...answerOf(made) })
    })

    .delete(
      `${path}/:guard_id`,
      requires('guard:write'),
      validate('param', oneGuard),
      validate('query', removal),
      async (c) => {
        const { guard_id: guardUuid } = c.req.valid('param')
        const { reason, dry_run } = c.req.valid('query')
        const isDryRun = dry_run === 'true'
        const order = { tool: 'remove_spend_guard', reason, isDryRun, expiresAt: null }
        const made = await changed(c, order, (use) => planRemoval(guardUuid, use))
        return ok(c, { ...made.own, ...answerOf(made) })
      },
    )
}
