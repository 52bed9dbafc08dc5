/** `GET /audit`: changes through the API and the tools, newest first. */
import { Hono } from 'hono'
import { z } from 'zod'
import { requires } from '../../auth/requires.ts'
import type { ControlEnv } from '../../http/control-env.ts'
import { endingMeta, offsetOf, ok, pageQuery } from '../../http/envelope.ts'
import { validate } from '../../http/validate.ts'
import { queryTime } from '../../http/fields.ts'
import type { AuditLog } from './audit-log.ts'

const auditQuery = z.strictObject({
  ...pageQuery,
  actor: z.string().max(200).optional().describe('Of an entry, or the name of a key.'),
  action: z.string().max(200).optional().describe('The start of the action.'),
  target: z.string().max(200).optional().describe('Part of the target.'),
  agents: z
    .enum(['true', 'false'])
    .transform((text) => text === 'true')
    .optional()
    .describe('Only what AI agents did, or only what others did.'),
  outcome: z.enum(['success', 'refused', 'failed']).optional(),
  start_date: queryTime.optional(),
  end_date: queryTime.optional(),
})

export const auditRoutes = (log: AuditLog) =>
  new Hono<ControlEnv>().get(
    '/audit',
    requires('audit:read'),
    validate('query', auditQuery),
    async (c) => {
      const { page, limit, start_date: from, end_date: before, ...rest } = c.req.valid('query')
      const filter = { tenantId: c.var.principal.tenantId, from, before, ...rest }
      const found = await log.list(filter, { limit, offset: offsetOf({ page, limit }) })
      return ok(c, found.entries, endingMeta({ page, limit }, found.total))
    },
  )
