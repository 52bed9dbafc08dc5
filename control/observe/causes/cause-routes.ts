/**
 * Routes for people who look for causes: anomalies, trunks, failures, the history of a node, the
 * activity of a key.
 */
import { setImmediate } from 'node:timers/promises'
import { Hono } from 'hono'
import { z } from 'zod'
import { first, readApart } from '../../../schema/sql/query.ts'
import type { KeyStore } from '../../auth/key-store.ts'
import { admitScope, requires } from '../../auth/requires.ts'
import { notFound } from '../../http/api-error.ts'
import type { ControlEnv } from '../../http/control-env.ts'
import { cursorQuery, ok, pageEnd, queryInteger, skippedBy } from '../../http/envelope.ts'
import { queryTime, text } from '../../http/fields.ts'
import type { Platform } from '../../http/platform.ts'
import { validate, describeRoute } from '../../http/validate.ts'
import type { WithOthers } from '../../instances/other-instances.ts'
import { findAnomalies, MAX_FINDINGS, USUAL_FINDINGS, anomaliesView } from './find-anomalies.ts'
import { kinds } from './finding.ts'
import { failuresIn, failuresReader, failuresView } from './failures.ts'
import { activityOf, keyActivityView } from './key-activity.ts'
import { nodeHistory, nodeHistoryOf, periodOf, visibleSets } from './state-history.ts'
import { MAX_TRUNKS, trunksOf, trunksView } from './trunks.ts'
import { recentCalls } from '../../reports/recent-calls.ts'
import type { WithReports } from '../../reports/reports.ts'
import { id } from '../../resources/resource-routes.ts'
import { data } from '../../http/operation.ts'
import { exampleTime } from '../../http/view-fields.ts'

const keyActivity = keyActivityView.meta({ id: 'KeyActivity' })

const trunksShown = trunksView.meta({ id: 'Trunks' })

const failuresShown = failuresView.meta({ id: 'Failures' })

const anomaliesShown = anomaliesView.meta({ id: 'Anomalies' })

const historyShown = nodeHistoryOf.meta({ id: 'DispatcherNodeHistory' })

const nodeParam = z.strictObject({ id: id('Dispatcher set'), nodeId: id('Node') })
const keyParam = z.strictObject({ uuid: z.string().max(100) })

const limitUpTo = (most: number, usual: number) =>
  queryInteger(/^[1-9]\d{0,8}$/, 'Expected an integer of at least 1', 1)
    .transform((limit) => Math.min(limit, most))
    .default(usual)
    .meta({ default: usual, description: `More than ${most} are never given.` })

const periodQuery = {
  start_date: queryTime.optional(),
  end_date: queryTime.optional().describe('Exclusive. Defaults to now.'),
}
const historyQuery = z.strictObject({
  ...periodQuery,
  limit: limitUpTo(200, 50),
  cursor: cursorQuery,
})
/** Separated by commas. */
const kindList = z
  .string()
  .max(200)
  .transform((text) => text.split(','))
  .pipe(z.array(z.enum(kinds)).min(1).max(kinds.length))
const anomalyQuery = z.strictObject({
  ...periodQuery,
  kinds: kindList.optional().describe(`Some of ${kinds.join(', ')}. Defaults to all.`),
  limit: limitUpTo(MAX_FINDINGS, USUAL_FINDINGS),
  cursor: cursorQuery,
})
const failuresQuery = z.strictObject({ ...periodQuery, limit: limitUpTo(50, 15) })
const trunksQuery = z.strictObject({
  search: text(100).optional().describe('Part of the name.'),
  troubled: z
    .enum(['true', 'false'])
    .default('false')
    .transform((flag) => flag === 'true')
    .describe('Only those that are not up.'),
  limit: limitUpTo(MAX_TRUNKS, MAX_TRUNKS),
  cursor: cursorQuery,
})
const activityQuery = z.strictObject({ ...periodQuery, limit: limitUpTo(100, 20) })

interface CauseDeps
  extends
    Pick<Platform, 'store' | 'engine' | 'now' | 'ocs' | 'instances'>,
    WithOthers,
    WithReports {
  readonly keys: Pick<KeyStore, 'byUuid'>
}

export function causeRoutes(deps: CauseDeps) {
  return new Hono<ControlEnv>()
    .route('/', findAnomaliesRoute(deps))
    .route('/', listTrunksRoute(deps))
    .route('/', getFailuresRoute(deps))
    .route('/', getDispatcherNodeHistoryRoute(deps))
    .route('/', getKeyActivityRoute(deps))
}

const exampleAnomalies = {
  start: exampleTime,
  end: exampleTime,
  total: 1,
  handled: 1,
  complete: true,
  cursor: null,
  searched: ['destination'],
  skipped: [],
  findings: [
    {
      kind: 'destination',
      severity: 'critical',
      subject: 'customer 7',
      what:
        'customer 7 "acme" spent 16.50 USD on 15 calls to 881, never on the days ' +
        'before: 99 % of all that it spent.',
      first_at: exampleTime,
      last_at: exampleTime,
      figures: { cost: 16.5 },
      evidence: ['6f9619ff-8b86-4d01-b42d-00cf4fc964ff'],
      advice:
        'Check whether a sample call is legitimate. If it is not, set a spend ' +
        'guard on the prefix, and find the phone or trunk that sent the call.',
      next: {
        tool: 'explain_call',
        arguments: { call_uuid: '6f9619ff-8b86-4d01-b42d-00cf4fc964ff' },
      },
      first_step: {
        tool: 'set_spend_guard',
        arguments: { customer: 7, prefix: '881', action: 'block', duration: 86_400 },
      },
      handled_by: {
        change_id: '3c1f2a52-8c0f-4a86-9f53-2d3f9d3f7c10',
        at: exampleTime,
        tool: 'set_spend_guard',
        by: 'night watch',
        reason: 'unusual spending of 16.50 USD',
        expires_at: exampleTime,
        seen_since: false,
      },
      caused_by: null,
      id: 12,
      state: 'open',
    },
  ],
}

const findAnomaliesRoute = (deps: CauseDeps) =>
  new Hono<ControlEnv>().get(
    '/anomalies',
    describeRoute({
      id: 'findAnomalies',
      tag: 'System',
      summary:
        'Find what is unusual in a period against the 14 days before; of less than a ' +
        'day, against the same hours of them. Kinds need the scopes of what they show.',
      answer: data(anomaliesShown, exampleAnomalies),
    }),
    requires('cdrs:read'),
    validate('query', anomalyQuery),
    async (c) => {
      const {
        start_date: start,
        end_date: end,
        kinds: named = kinds,
        limit,
        cursor,
      } = c.req.valid('query')
      const span = periodOf({ start, end }, deps.now(), { longestDays: 7 })
      const search = { ...deps, peers: deps.others?.of(c), pause: nextTurn }
      const wanted = [...new Set(named)]
      const page = { limit, offset: skippedBy(cursor) }
      return ok(c, await findAnomalies(search, c.var.principal, { span, wanted, ...page }))
    },
  )

const listTrunksRoute = (deps: CauseDeps) =>
  new Hono<ControlEnv>().get(
    '/trunks',
    describeRoute({
      id: 'listTrunks',
      tag: 'Routing',
      summary:
        'List carriers as trunks: registration, gateways, since when they are down and ' +
        'why. Troubled ones first.',
      answer: data(trunksShown, {
        trunks: [
          {
            id: 1,
            name: 'north',
            tenant: null,
            state: 'down',
            registration: null,
            gateways: [
              {
                destination: 'sip:192.0.2.9:5060;transport=udp',
                state: 'down',
                since: exampleTime,
                reason: 'no answer',
                latency_ms: null,
              },
            ],
            active_calls: 0,
            max_calls: 0,
            max_cps: 0,
            recent: { calls: 12, answered: 9, asr_percent: 75 },
            last_failure: { at: exampleTime, what: 'gateway', reason: 'no answer' },
          },
        ],
        total: 1,
        complete: true,
        cursor: null,
      }),
    }),
    requires('carriers:read'),
    validate('query', trunksQuery),
    async (c) => {
      const { search, troubled, limit, cursor } = c.req.valid('query')
      const { tenantId } = c.var.principal
      const reader = { store: deps.store, tenantId, engine: deps.engine, peers: deps.others?.of(c) }
      const list = () => trunksOf(reader, search, troubled)
      const { trunks, total } = await readApart(deps.store, tenantId, list)
      const offset = skippedBy(cursor)
      const listed = trunks.slice(offset, offset + limit)
      const recent = await recentCalls(deps, 'carrier', tenantId)
      return ok(c, {
        trunks: listed.map((trunk) => ({ ...trunk, recent: recent?.(trunk.name) ?? null })),
        total,
        ...pageEnd(offset + listed.length, total),
      })
    },
  )

const getFailuresRoute = ({ store, now }: CauseDeps) =>
  new Hono<ControlEnv>().get(
    '/metrics/failures',
    describeRoute({
      id: 'getFailures',
      tag: 'System',
      summary:
        'Get what failed in a period: calls by denial code, and requests of the API by ' +
        'route and key',
      answer: data(failuresShown, {
        start: exampleTime,
        end: exampleTime,
        calls: { total: 9, answered: 6, failed: 1, refused: { insufficient_funds: 2 } },
        api_requests: { total: 120, failed: 3 },
        api_failures: [
          {
            route: 'GET /api/v1/customers',
            code: 'insufficient_scope',
            requests: 3,
            key: '6f9619ff-8b86-4d01-b42d-00cf4fc964ff',
            first_at: exampleTime,
            last_at: exampleTime,
          },
        ],
        api_failures_total: 1,
        complete: true,
      }),
    }),
    requires('metrics:read'),
    validate('query', failuresQuery),
    async (c) => {
      const { start_date: start, end_date: end, limit } = c.req.valid('query')
      const period = periodOf({ start, end }, now(), { longestDays: 7 })
      const reader = failuresReader({ store, pause: nextTurn }, c.var.principal)
      return ok(c, await failuresIn(reader, { ...period, limit }))
    },
  )

const getDispatcherNodeHistoryRoute = (deps: CauseDeps) =>
  new Hono<ControlEnv>().get(
    '/dispatcher/:id/nodes/:nodeId/history',
    describeRoute({
      id: 'getDispatcherNodeHistory',
      tag: 'Dispatcher',
      summary: 'Get what changed the state of a node, and since when it is out of service',
      answer: data(historyShown, {
        node: {
          id: 1,
          set_id: 1,
          destination: 'sip:10.0.0.1:5060;transport=udp',
          state: 'probing',
          active_calls: 0,
        },
        down_since: exampleTime,
        down_because: 'no answer',
        last_probe: { at: exampleTime, status: 0, reason: 'no answer' },
        changes: [
          {
            at: exampleTime,
            from: 'active',
            to: 'probing',
            cause: 'probe',
            reason: 'no answer',
            by: null,
            seen_by: 'node-a',
          },
        ],
        has_older: false,
        complete: true,
        cursor: null,
      }),
    }),
    requires('dispatcher:read'),
    validate('param', nodeParam),
    validate('query', historyQuery),
    async (c) => {
      const { id: setRow, nodeId } = c.req.valid('param')
      const { start_date: start, end_date: end, limit, cursor } = c.req.valid('query')
      const period = periodOf({ start, end }, deps.now(), { longestDays: 90, usualDays: 7 })
      const { tenantId } = c.var.principal
      const found = await nodeOfSet(deps, setRow, nodeId, tenantId)
      const read = () =>
        nodeHistory({ store: deps.store, tenantId }, found, {
          ...period,
          limit,
          offset: skippedBy(cursor),
        })
      return ok(c, await readApart(deps.store, tenantId, read))
    },
  )

const getKeyActivityRoute = ({ store, now, keys }: CauseDeps) =>
  new Hono<ControlEnv>().get(
    '/application-keys/:uuid/activity',
    describeRoute({
      id: 'getKeyActivity',
      tag: 'Keys',
      summary:
        'Get what a key did: addresses, routes, refused attempts, changes. Requires ' +
        'audit:read, too.',
      answer: data(keyActivity, {
        uuid: '6f9619ff-8b86-4d01-b42d-00cf4fc964ff',
        name: 'reports',
        state: 'active',
        addresses: [
          {
            address: '192.0.2.7',
            is_new: true,
            first_at: exampleTime,
            last_at: exampleTime,
            requests: 12,
            denied: 3,
          },
        ],
        routes: [{ route: 'GET /api/v1/customers', requests: 12, failed: 3 }],
        refused: [
          {
            what: 'GET /api/v1/customers',
            code: 'address_not_allowed',
            attempts: 3,
            first_at: exampleTime,
            last_at: exampleTime,
          },
        ],
        changes: [],
        hours: [{ at: exampleTime, requests: 12, failed: 3 }],
        totals: { addresses: 1, routes: 1, refused: 1, changes: 0, hours: 1 },
        complete: true,
      }),
    }),
    requires('keys:read'),
    validate('param', keyParam),
    validate('query', activityQuery),
    async (c) => {
      const { principal } = c.var
      // The changes of the key are entries of the audit log.
      admitScope(principal, 'audit:read')
      const { start_date: start, end_date: end, limit } = c.req.valid('query')
      const period = periodOf({ start, end }, now(), { longestDays: 31 })
      const { tenantId, domain } = principal
      const key = await keys.byUuid(c.req.valid('param').uuid, tenantId)
      if (key === undefined || (domain !== null && key.domain !== domain))
        throw notFound('Application key')
      const read = () => activityOf(store, key, { ...period, limit }, now())
      return ok(c, await readApart(store, tenantId, read))
    },
  )

const nextTurn = async (): Promise<void> => {
  await setImmediate()
}

/** The number of the set, by which calls and tools name it. */
async function setNumber(store: Platform['store'], setRow: number): Promise<number | undefined> {
  const query = store.db.selectFrom('dispatcher_set').select('set_id').where('id', '=', setRow)
  return (await first(store, query))?.set_id
}

/** `setRow`: the id of the set, not its number. */
async function nodeOfSet(
  { store, engine }: Pick<Platform, 'store' | 'engine'>,
  setRow: number,
  nodeId: number,
  tenantId: number | null,
) {
  const sets = await visibleSets({ store, engine }, tenantId)
  const number = await setNumber(store, setRow)
  const set = sets.find(({ setId }) => setId === number)
  const node = set?.nodes.find((each) => each.nodeId === nodeId)
  if (set === undefined || node === undefined) throw notFound('Node')
  return { setId: set.setId, node }
}
