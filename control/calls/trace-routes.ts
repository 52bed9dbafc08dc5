/**
 * `GET /calls/{uuid}/trace`: the SIP messages of a call, and the decisions between them; with `.pcap`, the messages as
 * a packet capture.
 */
import { type Context, Hono } from 'hono'
import { z } from 'zod'
import { storedDenialText } from '../../schema/contracts/denials.ts'
import type { Trace } from '../../schema/contracts/trace.ts'
import type { Store } from '../../schema/open.ts'
import { first } from '../../schema/sql/query.ts'
import type { Principal } from '../auth/principal.ts'
import { requires } from '../auth/requires.ts'
import type { WithOthers } from '../nodes/other-nodes.ts'
import { notFound } from '../http/api-error.ts'
import type { ControlEnv } from '../http/control-env.ts'
import { ok } from '../http/envelope.ts'
import { validate } from '../http/validate.ts'
import { fromElsewhere } from '../nodes/elsewhere.ts'
import { pcapOf } from './pcap.ts'
import { findTrace, type TraceDeps, traceView } from './trace-view.ts'

const path = z.strictObject({ uuid: z.guid() })

/** What is left of a call that no process remembers: why it ended. Undefined: it was not refused, or cut short. */
async function endOfRecord(
  store: Store,
  uuid: string,
  { tenantId }: Principal,
): Promise<Trace | undefined> {
  const row = await first(
    store,
    store.db.selectFrom('cdr').selectAll().where('call_uuid', '=', uuid),
  )
  if (row === undefined || row.denial_code === null) return undefined
  if (tenantId !== null && row.tenant_id !== tenantId) return undefined
  const { disposition, billsec, denial_code: denialCode } = row
  const detail = {
    disposition,
    sipCode: row.sip_code,
    hangupBy: row.hangup_by,
    hangupCause: row.hangup_cause,
    denialCode,
    billsec,
    denialText: storedDenialText(denialCode, row.denial_text),
  }
  return {
    tenantId: row.tenant_id,
    legs: [],
    peers: [],
    isComplete: false,
    entries: [{ kind: 'decision', at: row.end_stamp, what: 'ended', detail }],
  }
}

export function traceRoutes(deps: TraceDeps & WithOthers) {
  /** What `answer` makes of the trace, or the response of the node that has it; `left`: what else there may be. */
  const answered = async (
    c: Context<ControlEnv>,
    uuid: string,
    answer: (trace: Trace) => Response | Promise<Response>,
    left: typeof endOfRecord | undefined,
  ): Promise<Response> => {
    const trace = await findTrace(deps.engine, uuid, c.var.principal)
    if (trace !== undefined) return answer(trace)
    const elsewhere = await fromElsewhere(c, deps.others)
    if (elsewhere !== undefined) return elsewhere
    // A node that asks wants what this one remembers: another may remember more.
    const isNode = c.get('nodeRequest') !== undefined
    const ended = isNode ? undefined : await left?.(deps.store, uuid, c.var.principal)
    if (ended === undefined) throw notFound('call')
    return answer(ended)
  }
  return new Hono<ControlEnv>()
    .get('/calls/:uuid/trace', requires('calls:read'), validate('param', path), async (c) => {
      const { uuid } = c.req.valid('param')
      const show = async (trace: Trace) =>
        ok(c, await traceView(uuid, trace, c.var.principal, deps))
      return answered(c, uuid, show, endOfRecord)
    })
    .get('/calls/:uuid/trace.pcap', requires('calls:read'), validate('param', path), async (c) => {
      const { uuid } = c.req.valid('param')
      const show = (trace: Trace) =>
        c.body(pcapOf(trace), 200, {
          'Content-Type': 'application/vnd.tcpdump.pcap',
          'Content-Disposition': `attachment; filename="${uuid}.pcap"`,
        })
      return answered(c, uuid, show, undefined)
    })
}
