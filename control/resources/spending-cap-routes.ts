/**
 * `/spend-guards`: brakes on calls to a prefix. The tools `set_spend_guard` and others do the same.
 */
import type { ChangeDeps } from '../changes/kinds.ts'
import { type Context, Hono } from 'hono'
import { z } from 'zod'
import type { OcsPort } from '../../schema/contracts/charging.ts'
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
  changeOutput,
} from '../changes/change.ts'
import { requires } from '../auth/requires.ts'
import { repeatable } from '../auth/idempotency.ts'
import type { ControlEnv } from '../http/control-env.ts'
import { created, offsetOf, ok, pageMeta, pageQuery } from '../http/envelope.ts'
import { notFound } from '../http/api-error.ts'
import { validate, describeRoute } from '../http/validate.ts'
import type { WithOthers } from '../instances/other-instances.ts'
import { reference } from '../http/fields.ts'
import { newUuid } from '../http/platform.ts'
import {
  spendingCapBody,
  spendingCapFields,
  type SpendingCapView,
  viewsOf,
  spendingCapView,
  listSpendingCaps,
} from './spending-cap-view.ts'
import { type SpendingCapUse, noun, planSpendingCap, planRemoval } from './spending-cap-plan.ts'
import { SpendingCapStore } from './spending-cap-store.ts'
import { requestScope } from '../auth/tenants.ts'
import { data, list } from '../http/operation.ts'

const viewShown = spendingCapView.meta({ id: 'SpendGuard' })

const changedView = z
  .strictObject({
    guard: viewShown,
    ...changeOutput,
  })
  .meta({ id: 'SpendGuardChange' })

const exampleCap = spendingCapFields.example

const exampleChange = {
  guard: exampleCap,
  dry_run: false,
  changed: true,
  change_id: '9a7f1a6e-4a63-4d4c-9e55-2f6f0f5d9a11',
  effect:
    'Calls of customer "acme" to numbers that begin with "1900" may cost 5.00 USD in all ' +
    'until 2026-01-01T08:00:00.000Z; beyond, they are refused or ended.',
  affected: { live_calls: 2, calls_last_hour: 15, spent_last_hour: 16.5 },
  previous_state: null,
  expires_at: '2026-01-01T08:00:00.000Z',
  undo: 'undo_change with change_id 9a7f1a6e-4a63-4d4c-9e55-2f6f0f5d9a11',
}

const path = '/spend-guards'
const scopes = ['guard:write'] as const

const ofChange = {
  reason: changeReason,
  dry_run: dryRun,
}
const newCap = spendingCapBody.extend({ ...ofChange, duration: changeDuration.optional() })
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
const oneCap = z.strictObject({
  guard_id: z.string().transform((text, context) => {
    if (z.uuid().safeParse(text).success) return text.toLowerCase()
    context.addIssue({ code: 'custom', message: 'must be a UUID' })
    return z.NEVER
  }),
})

type SpendingCapDeps = ChangeDeps & WithOthers & { readonly ocs: OcsPort }

export function spendingCapRoutes(deps: SpendingCapDeps) {
  return new Hono<ControlEnv>()
    .route('/', listSpendGuardsRoute(deps))
    .route('/', getSpendGuardRoute(deps))
    .route('/', setSpendGuardRoute(deps))
    .route('/', removeSpendGuardRoute(deps))
}

function listSpendGuardsRoute(deps: SpendingCapDeps) {
  const { store, now } = deps
  return new Hono<ControlEnv>().get(
    path,
    describeRoute({
      id: 'listSpendGuards',
      tag: 'Spend guards',
      summary: 'List spend guards, newest first',
      answer: list(viewShown, exampleCap),
    }),
    requires('guard:read'),
    validate('query', listQuery),
    async (c) => {
      const { page, limit, state, ...subject } = c.req.valid('query')
      const slice = { limit, offset: offsetOf({ page, limit }), isWithEnded: state === 'all' }
      const scope = requestScope(c.var.principal, now)
      const { guards, total } = await listSpendingCaps(store, subject, slice, scope)
      return ok(c, guards, pageMeta({ page, limit }, total))
    },
  )
}

function getSpendGuardRoute(deps: SpendingCapDeps) {
  const { store, now } = deps
  return new Hono<ControlEnv>().get(
    `${path}/:guard_id`,
    describeRoute({
      id: 'getSpendGuard',
      tag: 'Spend guards',
      summary: 'Get a spend guard',
      answer: data(viewShown, exampleCap),
      refusals: [404],
    }),
    requires('guard:read'),
    validate('param', oneCap),
    async (c) => {
      const guards = new SpendingCapStore(store)
      const { tenantId } = c.var.principal
      const row = await guards.find(tenantId, c.req.valid('param').guard_id)
      const [view] = row === undefined ? [] : await viewsOf(guards, [row], now())
      if (view === undefined) throw notFound(noun)
      return ok(c, view)
    },
  )
}

function setSpendGuardRoute(deps: SpendingCapDeps) {
  const { now } = deps
  return new Hono<ControlEnv>().post(
    path,
    describeRoute({
      id: 'setSpendGuard',
      tag: 'Spend guards',
      summary:
        'Stop (block) or limit (cap) calls to a prefix, from the next call on all nodes. ' +
        'Repeating it changes nothing.',
      body: {
        customer: 'acme',
        prefix: '1900',
        action: 'cap',
        amount: '5.00',
        duration: 28_800,
        reason: 'many calls to premium numbers',
      },
      answer: data(changedView, exampleChange, 201),
      refusals: [409],
    }),
    requires('guard:write'),
    validate('json', newCap),
    repeatable(),
    async (c) => {
      const { reason, duration, dry_run: isDryRun, ...body } = c.req.valid('json')
      const expiresAt = duration === undefined ? null : now() + duration * 1_000
      const order = { tool: 'set_spend_guard', reason, isDryRun, expiresAt }
      const made = await changed(deps, c, order, (use) => planSpendingCap(body, use))
      const location = `/api/v1${path}/${made.own.guard.guard_id}`
      return created(c, location, { ...made.own, ...answerOf(made) })
    },
  )
}

function removeSpendGuardRoute(deps: SpendingCapDeps) {
  return new Hono<ControlEnv>().delete(
    `${path}/:guard_id`,
    describeRoute({
      id: 'removeSpendGuard',
      tag: 'Spend guards',
      summary: 'Remove a spend guard',
      answer: data(changedView, exampleChange),
      refusals: [404, 409],
    }),
    requires('guard:write'),
    validate('param', oneCap),
    validate('query', removal),
    async (c) => {
      const { guard_id: capUuid } = c.req.valid('param')
      const { reason, dry_run } = c.req.valid('query')
      const isDryRun = dry_run === 'true'
      const order = { tool: 'remove_spend_guard', reason, isDryRun, expiresAt: null }
      const made = await changed(deps, c, order, (use) => planRemoval(capUuid, use))
      return ok(c, { ...made.own, ...answerOf(made) })
    },
  )
}

/** Plans, makes and records the change; a dry run only plans. */
async function changed(
  deps: SpendingCapDeps,
  c: Context<ControlEnv>,
  {
    tool,
    reason,
    isDryRun,
    expiresAt,
  }: Required<Pick<ChangeOrder, 'tool' | 'reason' | 'isDryRun' | 'expiresAt'>>,
  plan: (use: SpendingCapUse) => Promise<Plan<{ readonly guard: SpendingCapView }>>,
): Promise<MadeChange<{ readonly guard: SpendingCapView }>> {
  const { principal } = c.var
  const changeId = newUuid(deps.randomBytes)
  const order = { principal, tool, scopes, reason, isDryRun, changeId, expiresAt }
  const peers = deps.others?.of(c)
  const use = { ...deps, principal, changeId, reason, expiresAt, peers }
  const made = await change(deps, order, () => plan(use))
  const { before, after } = made.plan
  if (made.changeId !== null) recordChange(c, made.changeId, { before, after }, reason)
  return made
}
