/** The audit log for agents: who did what, and what was refused. */
import { z } from 'zod'
import { text } from '../../../http/fields.ts'
import { defineTool } from '../../tool.ts'
import { time } from '../shapes.ts'
import { periodInput, periodOf } from '../../../observe/causes/period.ts'

export const searchAudit = defineTool({
  name: 'search_audit',
  title: 'Search the audit log',
  description:
    'Finds changes through the API and calls of tools, newest first. Each says who did what from which address, and whether it was refused. changes_only leaves out what only read.',
  effect: 'reads',
  scopes: ['audit:read'],
  input: z.strictObject({
    ...periodInput,
    actor: text(200).optional().describe('key:<uuid>, user:<name>, or the exact name of a key.'),
    action: text(200).optional().describe('Its start, such as "DELETE" or "tool set_".'),
    target: text(200).optional().describe('Part of the path or of the arguments.'),
    outcome: z.enum(['success', 'refused', 'failed']).optional(),
    changes_only: z.boolean().default(false),
    limit: z.int().min(1).max(100).default(15),
  }),
  output: z.object({
    entries: z.array(
      z.object({
        at: time,
        actor: z.string(),
        actor_name: z.string().nullable(),
        address: z.string(),
        action: z.string(),
        target: z.string(),
        outcome: z.enum(['success', 'refused', 'failed']),
        code: z.string().nullable(),
        correlation_id: z.string(),
      }),
    ),
    total: z.int(),
  }),
  async run({ start, end, changes_only, limit, ...filter }, { audit, now, principal }) {
    const period = periodOf({ start, end }, now(), { longestDays: 400, usualDays: 1 })
    const asked = { ...filter, ...period, tenantId: principal.tenantId, changes: changes_only }
    const { entries, total } = await audit.list(asked, { limit, offset: 0 })
    return {
      entries: entries.map((entry) => ({ ...entry, target: shortened(entry.target) })),
      total,
    }
  },
})

const shortened = (target: string): string =>
  target.length <= 160 ? target : `${target.slice(0, 159)}…`
