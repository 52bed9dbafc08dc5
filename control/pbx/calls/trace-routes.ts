/**
 * `GET /calls/{uuid}/trace`: the SIP messages of a call, and the decisions between them; with `.pcap`, the messages as
 * a packet capture.
 */
import { Hono } from 'hono'
import { z } from 'zod'
import type { Trace } from '../../../schema/contracts/trace.ts'
import type { Principal } from '../../auth/principal.ts'
import { requires } from '../../auth/requires.ts'
import { notFound } from '../../http/api-error.ts'
import type { ControlEnv } from '../../http/control-env.ts'
import { ok } from '../../http/envelope.ts'
import { validate } from '../../http/validate.ts'
import { pcapOf } from './pcap.ts'
import { findTrace, type TraceDeps, traceView } from './trace-view.ts'

const path = z.strictObject({ uuid: z.guid() })

export function traceRoutes(deps: TraceDeps) {
  const find = async (uuid: string, principal: Principal): Promise<Trace> => {
    const trace = await findTrace(deps.engine, uuid, principal)
    if (trace === undefined) throw notFound('call')
    return trace
  }
  return new Hono<ControlEnv>()
    .get('/calls/:uuid/trace', requires('calls:read'), validate('param', path), async (c) => {
      const { uuid } = c.req.valid('param')
      const { principal } = c.var
      return ok(c, await traceView(uuid, await find(uuid, principal), principal, deps))
    })
    .get('/calls/:uuid/trace.pcap', requires('calls:read'), validate('param', path), async (c) => {
      const { uuid } = c.req.valid('param')
      return c.body(pcapOf(await find(uuid, c.var.principal)), 200, {
        'Content-Type': 'application/vnd.tcpdump.pcap',
        'Content-Disposition': `attachment; filename="${uuid}.pcap"`,
      })
    })
}
