/** `/changes`: the changes of operators and agents, newest first, and their undoing. */
import type { ChangeDeps } from './kinds.ts'
import { Hono } from 'hono'
import { z } from 'zod'
import { requires } from '../auth/requires.ts'
import { repeatable } from '../auth/idempotency.ts'
import { notFound } from '../http/api-error.ts'
import type { ControlEnv } from '../http/control-env.ts'
import { endingMeta, offsetOf, ok, pageQuery } from '../http/envelope.ts'
import { validate, describeRoute } from '../http/validate.ts'
import { queryTime } from '../http/fields.ts'
import { changeReason, dryRun } from './change.ts'
import { changeStates } from '../../schema/tables/changes.ts'
import { ChangeStore, changeView, stateIn } from './change-store.ts'
import { undoChange } from './undo.ts'
import { data, list } from '../http/operation.ts'
import { exampleTime, moment } from '../http/view-fields.ts'

const stateView = z.unknown().describe('JSON; null: it is not there.')

const changeSchema = z
  .strictObject({
    change_id: z.string(),
    at: moment,
    state: z
      .enum(changeStates)
      .describe(
        '`made`: it stands. `superseded`: its time ran out after a later change. ' +
          '`unconfirmed`: the process ended while it was made.',
      ),
    actor: z.string().describe('As in the audit log.'),
    actor_name: z.string().nullable(),
    tenant_id: z.int().nullable(),
    tool: z.string(),
    target_kind: z.string(),
    target_id: z.string(),
    reason: z.string().nullable(),
    effect: z.string(),
    before: stateView,
    after: stateView,
    is_reversible: z.boolean(),
    is_state_kept: z
      .boolean()
      .describe(
        'False: `before` and `after` have the names of the fields, and no values: they were ' +
          'too long, or have given way to later changes.',
      ),
    expires_at: moment.nullable().describe('When the platform undoes it.'),
    undone_at: moment.nullable(),
    undone_by: z.string().nullable(),
    undo_reason: z.string().nullable(),
    proposal_id: z.string().nullable(),
  })
  .meta({ id: 'Change' })

const undone = z
  .strictObject({
    dry_run: z.boolean(),
    changed: z
      .boolean()
      .describe('False: it was undone before. In a dry run: whether it would be.'),
    effect: z.string(),
    change: changeSchema,
  })
  .meta({ id: 'UndoneChange' })

export const exampleId = '3c1f2a52-8c0f-4a86-9f53-2d3f9d3f7c10'

const exampleChange = {
  change_id: exampleId,
  at: exampleTime,
  state: 'made',
  tool: 'set_dispatcher_state',
  actor: 'key:9a7f1a6e-4a63-4d4c-9e55-2f6f0f5d9a11',
  actor_name: 'night watch',
  tenant_id: null,
  target_kind: 'dispatcher_node',
  target_id: '1/sip:10.0.0.5:5060;transport=udp',
  reason: 'one-way audio',
  effect:
    'Node "sip:10.0.0.5:5060;transport=udp" of set 1 goes from active to inactive: its ' +
    'live calls continue, and it gets no new ones.',
  before: 'active',
  after: 'inactive',
  is_reversible: true,
  expires_at: null,
  is_state_kept: true,
  undone_at: null,
  undone_by: null,
  undo_reason: null,
  proposal_id: null,
}

const exampleUndone = {
  ...exampleChange,
  state: 'undone',
  undone_at: exampleTime,
  undone_by: 'user:ada',
  undo_reason: 'repaired',
}

const changeQuery = z.strictObject({
  ...pageQuery,
  actor: z.string().max(200).optional().describe('Of a change, or the name of a key.'),
  tool: z.string().max(100).optional(),
  target_kind: z.string().max(100).optional(),
  target: z.string().max(400).optional().describe('`target_id` of a change.'),
  state: z.enum(changeStates).optional(),
  start_date: queryTime.optional(),
  end_date: queryTime.optional(),
})

const changePath = z.strictObject({ change_id: z.string().max(100) })
const undoBody = z.strictObject({ reason: changeReason, dry_run: dryRun })

export function changeRoutes(deps: ChangeDeps) {
  const entries = new ChangeStore(deps.store)
  return new Hono<ControlEnv>()
    .route('/', listChangesRoute(entries))
    .route('/', getChangeRoute(entries))
    .route('/', undoChangeRoute(deps))
}

const listChangesRoute = (entries: ChangeStore) =>
  new Hono<ControlEnv>().get(
    '/changes',
    describeRoute({
      id: 'listChanges',
      tag: 'Changes',
      summary: 'List changes, newest first',
      answer: list(changeSchema, exampleChange),
    }),
    requires('audit:read'),
    validate('query', changeQuery),
    async (c) => {
      const query = c.req.valid('query')
      const { page, limit, start_date: from, end_date: before, target: target_id, ...rest } = query
      const filter = { tenantId: c.var.principal.tenantId, from, before, target_id, ...rest }
      const found = await entries.list(filter, { limit, offset: offsetOf({ page, limit }) })
      return ok(c, found.entries.map(changeView), endingMeta({ page, limit }, found.total))
    },
  )

const getChangeRoute = (entries: ChangeStore) =>
  new Hono<ControlEnv>().get(
    '/changes/:change_id',
    describeRoute({
      id: 'getChange',
      tag: 'Changes',
      summary: 'Get a change',
      answer: data(changeSchema, exampleChange),
    }),
    requires('audit:read'),
    validate('param', changePath),
    async (c) => {
      const { tenantId } = c.var.principal
      const entry = await entries.find(c.req.valid('param').change_id, tenantId)
      if (entry === undefined) throw notFound('Change')
      return ok(c, changeView(entry))
    },
  )

// With the scopes of the tool that made the change, too.
const undoChangeRoute = (deps: ChangeDeps) =>
  new Hono<ControlEnv>().post(
    '/changes/:change_id/undo',
    describeRoute({
      id: 'undoChange',
      tag: 'Changes',
      summary: 'Undo a change. Requires the scopes of the tool that made it, too.',
      body: { reason: 'repaired' },
      answer: data(undone, {
        dry_run: false,
        changed: true,
        effect:
          'The dispatcher_node "1/sip:10.0.0.2:5060" gets back the state that it had before ' +
          `change ${exampleId} (set_dispatcher_state), whose effect was: Node ` +
          '"sip:10.0.0.2:5060" of set 1 goes from active to inactive: its live calls continue, ' +
          'and it gets no new ones.',
        change: exampleUndone,
      }),
      refusals: [409],
    }),
    requires('audit:read'),
    validate('param', changePath),
    validate('json', undoBody),
    repeatable(),
    async (c) => {
      const { reason, dry_run: isDryRun } = c.req.valid('json')
      const { change_id: changeId } = c.req.valid('param')
      const order = { principal: c.var.principal, changeId, reason, isDryRun }
      const { entry, isChanged, effect, state } = await undoChange(deps, order)
      if (isChanged && !isDryRun)
        c.set('change', { before: state, after: stateIn(entry.state_before), changeId, reason })
      const shown = changeView(entry)
      return ok(c, { dry_run: isDryRun, changed: isChanged, effect, change: shown })
    },
  )
