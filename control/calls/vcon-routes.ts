/** `GET /calls/{uuid}/vcon`: what is known of a call that has ended, as one file for other programs. */
import { type Context, Hono } from 'hono'
import { z } from 'zod'
import { requires } from '../auth/requires.ts'
import type { WithOthers } from '../nodes/other-nodes.ts'
import { notFound } from '../http/api-error.ts'
import type { ControlEnv } from '../http/control-env.ts'
import { validate } from '../http/validate.ts'
import { dataOf } from '../nodes/answer-data.ts'
import { viewOf } from '../reports/cdr-view.ts'
import { findRecord } from '../reports/find-record.ts'
import { findTrace, type TraceDeps, traceView } from './trace-view.ts'
import { vconOf } from './vcon.ts'

/** The uuid of a call that a node reported may be any text. */
const path = z.strictObject({ uuid: z.string().max(200) })

export function vconRoutes(deps: TraceDeps & WithOthers) {
  return new Hono<ControlEnv>().get(
    '/calls/:uuid/vcon',
    requires('cdrs:read'),
    validate('param', path),
    async (c) => {
      const { uuid } = c.req.valid('param')
      const { principal } = c.var
      const record = await findRecord(uuid, { store: deps.store, principal })
      if (record === undefined) throw notFound('call')
      const trace = principal.scopes.has('calls:read') ? await traceOf(c, uuid, deps) : undefined
      const { origin, pathname } = new URL(c.req.url)
      const vcon = vconOf(viewOf(record), {
        recordingUrl: `${origin}${pathname.replace(/\/vcon$/, '/recording')}`,
        trace,
      })
      return c.json(vcon, 200, {
        'Content-Disposition': `attachment; filename="${fileName(uuid)}.vcon.json"`,
      })
    },
  )
}

/** As `GET /calls/{uuid}/trace` shows it, of this node or of the one that has it. */
async function traceOf(
  c: Context<ControlEnv>,
  uuid: string,
  { others, ...deps }: TraceDeps & WithOthers,
): Promise<object | undefined> {
  const { principal } = c.var
  const trace = await findTrace(deps.engine, uuid, principal)
  if (trace !== undefined) return traceView(uuid, trace, principal, deps)
  const target = `/api/v1/calls/${encodeURIComponent(uuid)}/trace`
  const answer = await others?.of(c)?.first({ method: 'GET', target })
  // A node that keeps no trace of it is none that is missing.
  return answer === undefined || answer === 'unknown' ? undefined : dataOf(answer, traceData)
}

const traceData = z.looseObject({ call_uuid: z.string() })

/** Nodes choose the uuids of calls that they report. */
const fileName = (uuid: string): string => uuid.replace(/[^\w.-]/g, '_')
