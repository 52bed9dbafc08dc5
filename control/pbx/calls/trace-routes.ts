/**
 * `GET /calls/{uuid}/trace`: the SIP messages of a call, and the decisions between them; with `.pcap`, the messages as
 * a packet capture.
 */
import { type Context, Hono } from 'hono'
import { z } from 'zod'
import type { Trace } from '../../../schema/contracts/trace.ts'
import { requires } from '../../auth/requires.ts'
import type { ControlDeps } from '../../deps.ts'
import { notFound } from '../../http/api-error.ts'
import type { ControlEnv } from '../../http/control-env.ts'
import { ok } from '../../http/envelope.ts'
import { validate } from '../../http/validate.ts'
import { fromElsewhere } from '../../nodes/elsewhere.ts'
import { pcapOf } from './pcap.ts'
import { findTrace, type TraceDeps, traceView } from './trace-view.ts'

const path = z.strictObject({ uuid: z.guid() })

export function traceRoutes(deps: TraceDeps & Pick<ControlDeps, 'others'>) {
  /** What `answer` makes of the trace, or the response of the node that has it. */
  const answered = async (
    c: Context<ControlEnv>,
    uuid: string,
    answer: (trace: Trace) => Response | Promise<Response>,
  ): Promise<Response> => {
    const trace = await findTrace(deps.engine, uuid, c.var.principal)
    if (trace !== undefined) return answer(trace)
    const elsewhere = await fromElsewhere(c, deps.others)
    if (elsewhere === undefined) throw notFound('call')
    return elsewhere
  }
  return new Hono<ControlEnv>()
    .get('/calls/:uuid/trace', requires('calls:read'), validate('param', path), async (c) => {
      const { uuid } = c.req.valid('param')
      return answered(c, uuid, async (trace) =>
        ok(c, await traceView(uuid, trace, c.var.principal, deps)),
      )
    })
    .get('/calls/:uuid/trace.pcap', requires('calls:read'), validate('param', path), async (c) => {
      const { uuid } = c.req.valid('param')
      return answered(c, uuid, (trace) =>
        c.body(pcapOf(trace), 200, {
          'Content-Type': 'application/vnd.tcpdump.pcap',
          'Content-Disposition': `attachment; filename="${uuid}.pcap"`,
        }),
      )
    })
}
