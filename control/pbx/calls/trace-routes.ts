/** `GET /calls/{uuid}/trace`: the SIP messages of a call, and the decisions between them. */
import { Hono } from 'hono'
import { z } from 'zod'
import { timeToText } from '../../../schema/columns.ts'
import { requires } from '../../auth/requires.ts'
import type { EnginePort } from '../../../schema/contracts/engine-port.ts'
import type { TraceEntry } from '../../../schema/contracts/trace.ts'
import { notFound } from '../../http/api-error.ts'
import type { ControlEnv } from '../../http/control-env.ts'
import { ok } from '../../http/envelope.ts'
import { validate } from '../../http/validate.ts'

const path = z.strictObject({ uuid: z.guid() })

export function traceRoutes(engine: Pick<EnginePort, 'trace'>) {
  return new Hono<ControlEnv>().get(
    '/calls/:uuid/trace',
    requires('calls:read'),
    validate('param', path),
    async (c) => {
      const { uuid } = c.req.valid('param')
      const { tenantId } = c.var.principal
      const trace = await engine.trace(uuid)
      if (trace === undefined || (tenantId !== null && trace.tenantId !== tenantId))
        throw notFound('call')
      const { legs, entries, isComplete } = trace
      const hidden = tenantId === null ? [] : ['prices']
      const shown = entries.map((entry) => viewOf(entry, legs, hidden))
      return ok(c, { call_uuid: uuid, legs, is_complete: isComplete, entries: shown })
    },
  )
}

/** Carrier prices are hidden from tenants. */
function viewOf(entry: TraceEntry, legs: readonly string[], hidden: readonly string[]) {
  const at = timeToText(entry.at)
  if (entry.kind === 'decision')
    return { at, kind: entry.kind, what: entry.what, detail: inSnakeCase(entry.detail, hidden) }
  const { kind, direction, leg, transport, address, text } = entry
  const end = text.indexOf('\r\n')
  const summary = end === -1 ? text : text.slice(0, end)
  return { at, kind, direction, leg: legs.indexOf(leg), transport, address, summary, text }
}

const inSnakeCase = (detail: Readonly<Record<string, unknown>>, hidden: readonly string[]) =>
  Object.fromEntries(
    Object.entries(detail)
      .filter(([name]) => !hidden.includes(name))
      .map(([name, value]) => [
        name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
        value,
      ]),
  )
