/** Fields that many responses share, and their examples. */
import { z } from 'zod'
import { timeToText } from '../../schema/columns.ts'

/** RFC 3339, UTC. */
export const moment = z.iso.datetime()
export const count = z.int().min(0)
/** An exact amount. */
export const decimal = z.string().regex(/^-?\d+\.\d{2,6}$/)
export const exampleTime = '2026-01-01T00:00:00.000Z'

export const probed = z.strictObject({
  state: z.enum(['active', 'probing', 'inactive']),
  latency_ms: z.number().nullable().describe('Smoothed round-trip time of the probes.'),
  last_probe: z
    .strictObject({
      at: moment,
      status: z.int().describe('0 when there was no response; `reason` says why.'),
      reason: z.string(),
    })
    .nullable(),
  probes: z.strictObject({ sent: count, answered: count, failed: count }),
})

export const exampleProbed = {
  state: 'active',
  latency_ms: 1.2,
  last_probe: { at: exampleTime, status: 200, reason: 'OK' },
  probes: { sent: 120, answered: 120, failed: 0 },
}

export const tagsField = z
  .record(z.string(), z.string())
  .nullable()
  .describe('Tags that a hook or a routing webhook has set. Null: none.')

export const denialTextField = z
  .string()
  .nullable()
  .describe(
    'Why the platform refused or ended the call, and what to do: one sentence. Null: it did ' +
      'not. `/guide#denial-<code>` is the entry of the guide.',
  )

export const timeOrNull = (ms: number | null): string | null =>
  ms === null ? null : timeToText(ms)
