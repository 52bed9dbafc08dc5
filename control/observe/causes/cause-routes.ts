/** Since when and why, for people: what is unusual, trunks, failures, the history of a node, and what a key did. */
import { setImmediate } from 'node:timers/promises'
import { Hono } from 'hono'
import { z } from 'zod'
import { first } from '../../../schema/sql/query.ts'
import { readApart } from '../../../schema/sql/read-apart.ts'
import { admitScope, requires } from '../../auth/requires.ts'
import type { KeyStore } from '../../auth/key-store.ts'
import type { Platform } from '../../http/platform.ts'
import type { WithOthers } from '../../nodes/other-nodes.ts'
import type { WithReports } from '../../reports/reports.ts'
import { notFound } from '../../http/api-error.ts'
import type { ControlEnv } from '../../http/control-env.ts'
import { ok, queryInteger } from '../../http/envelope.ts'
import { validate } from '../../http/validate.ts'
import { queryTime, text } from '../../http/fields.ts'
import { id } from '../../resources/resource-routes.ts'
import { findAnomalies, MAX_FINDINGS, USUAL_FINDINGS } from './anomalies/find-anomalies.ts'
import { kinds } from './anomalies/finding.ts'
import { failuresIn, failuresReader } from './failures.ts'
import { activityOf } from './key-activity.ts'
import { nodeHistory } from './node-history.ts'
import { periodOf } from './period.ts'
import { MAX_TRUNKS, trunksOf } from './trunks.ts'
import { visibleSets } from './visible-sets.ts'

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
const historyQuery = z.strictObject({ ...periodQuery, limit: limitUpTo(200, 50) })
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
})
const activityQuery = z.strictObject({ ...periodQuery, limit: limitUpTo(100, 20) })

export function causeRoutes(
  deps: Pick<Platform, 'store' | 'engine' | 'now' | 'ocs'> &
    WithOthers &
    WithReports & {
      readonly keys: Pick<KeyStore, 'byUuid'>
    },
) {
  const { store, now, keys } = deps
  return new Hono<ControlEnv>()
    .get('/anomalies', requires('cdrs:read'), validate('query', anomalyQuery), async (c) => {
      const { start_date: start, end_date: end, kinds: asked = kinds, limit } = c.req.valid('query')
      const span = periodOf({ start, end }, now(), { longestDays: 7 })
      const world = { ...deps, elsewhere: deps.others?.of(c), pause: nextTurn }
      const wanted = [...new Set(asked)]
      return ok(c, await findAnomalies(world, c.var.principal, { span, wanted, limit }))
    })

    .get('/trunks', requires('carriers:read'), validate('query', trunksQuery), async (c) => {
      const { search, troubled, limit } = c.req.valid('query')
      const { tenantId } = c.var.principal
      const reader = { store, tenantId, engine: deps.engine, elsewhere: deps.others?.of(c) }
      const list = () => trunksOf(reader, search, troubled)
      const { trunks, total } = await readApart(store, tenantId, list)
      return ok(c, { trunks: trunks.slice(0, limit), total })
    })

    .get(
      '/metrics/failures',
      requires('metrics:read'),
      validate('query', failuresQuery),
      async (c) => {
        const { start_date: start, end_date: end, limit } = c.req.valid('query')
        const period = periodOf({ start, end }, now(), { longestDays: 7 })
        const reader = failuresReader({ store, pause: nextTurn }, c.var.principal)
        return ok(c, await failuresIn(reader, { ...period, limit }))
      },
    )

    .get(
      '/dispatcher/:id/nodes/:nodeId/history',
      requires('dispatcher:read'),
      validate('param', nodeParam),
      validate('query', historyQuery),
      async (c) => {
        const { id: setRow, nodeId } = c.req.valid('param')
        const { start_date: start, end_date: end, limit } = c.req.valid('query')
        const period = periodOf({ start, end }, now(), { longestDays: 90, usualDays: 7 })
        const { tenantId } = c.var.principal
        const found = await nodeOfSet(deps, setRow, nodeId, tenantId)
        const read = () => nodeHistory({ store, tenantId }, found, { ...period, limit })
        return ok(c, await readApart(store, tenantId, read))
      },
    )

    .get(
      '/application-keys/:uuid/activity',
      requires('keys:read'),
      validate('param', keyParam),
      validate('query', activityQuery),
      async (c) => {
        const { principal } = c.var
        // What it has changed stands in the audit log.
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
}

const nextTurn = async (): Promise<void> => {
  await setImmediate()
}

/** Its number, by which calls and tools name it. */
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
