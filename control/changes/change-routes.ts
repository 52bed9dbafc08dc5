/** `/changes`: what operators and agents changed, newest first, and its undoing. */
import type { ChangeDeps } from './kinds.ts'
import { Hono } from 'hono'
import { z } from 'zod'
import { requires } from '../auth/requires.ts'
import { notFound } from '../http/api-error.ts'
import type { ControlEnv } from '../http/control-env.ts'
import { endingMeta, offsetOf, ok, pageQuery } from '../http/envelope.ts'
import { validate } from '../http/validate.ts'
import { queryTime } from '../http/fields.ts'
import { changeReason, dryRun } from './change.ts'
import { changeStates } from '../../schema/tables/changes.ts'
import { ChangeStore, changeView, stateIn } from './change-store.ts'
import { undoChange } from './undo.ts'

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

export function changeRoutes(world: ChangeDeps) {
  const entries = new ChangeStore(world.store)
  return (
    new Hono<ControlEnv>()
      .get('/changes', requires('audit:read'), validate('query', changeQuery), async (c) => {
        const query = c.req.valid('query')
        const {
          page,
          limit,
          start_date: from,
          end_date: before,
          target: target_id,
          ...rest
        } = query
        const filter = { tenantId: c.var.principal.tenantId, from, before, target_id, ...rest }
        const found = await entries.list(filter, { limit, offset: offsetOf({ page, limit }) })
        return ok(c, found.entries.map(changeView), endingMeta({ page, limit }, found.total))
      })

      .get(
        '/changes/:change_id',
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
      .post(
        '/changes/:change_id/undo',
        requires('audit:read'),
        validate('param', changePath),
        validate('json', undoBody),
        async (c) => {
          const { reason, dry_run: isDryRun } = c.req.valid('json')
          const { change_id: changeId } = c.req.valid('param')
          const order = { principal: c.var.principal, changeId, reason, isDryRun }
          const { entry, isChanged, effect, state } = await undoChange(world, order)
          if (isChanged && !isDryRun)
            c.set('change', { before: state, after: stateIn(entry.state_before), changeId, reason })
          const shown = changeView(entry)
          return ok(c, { dry_run: isDryRun, changed: isChanged, effect, change: shown })
        },
      )
  )
}
