/** How many of the last calls were answered: what "up" does not say about a carrier or a node. */
import { z } from 'zod'
import { HOUR_MS } from '../../schema/clock.ts'
import type { Reports } from './reports.ts'

const RECENT_MS = HOUR_MS
/** Carriers and nodes with fewer calls than these many others have no figures. */
const MAX_GROUPS = 200

export const recentView = z
  .strictObject({
    calls: z.int().min(0).describe('Without those that this platform refused.'),
    answered: z.int().min(0),
    asr_percent: z.number().nullable().describe('Null: no call.'),
  })
  .nullable()
  .describe('Calls of the last hour that ended. Null: too many reports are in progress.')

type Recent = z.output<typeof recentView>

interface RecentDeps {
  readonly reports: Pick<Reports, 'summarize'>
  readonly now: () => number
}

/**
 * By the name of a carrier, or the SIP URI of a node; undefined: too many reports are in progress.
 */
export async function recentCalls(
  { reports, now }: RecentDeps,
  groupBy: 'carrier' | 'node',
  tenantId: number | null,
): Promise<((name: string) => Recent) | undefined> {
  const before = now() + 1
  const period = { from: before - RECENT_MS, before }
  const filters = { members: {}, direction: undefined, disposition: undefined }
  const order = { groupBy, orderBy: 'count', limit: MAX_GROUPS } as const
  const found = await reports.summarize({ tenantId, filters, ...period, ...order })
  if (found === undefined) return undefined
  const groups = new Map(found.groups.map((group) => [group.group, group]))
  return (name) => {
    const { calls: all = 0, denied = 0, answered = 0 } = groups.get(name) ?? {}
    const calls = all - denied
    const asr_percent = calls === 0 ? null : Math.round((answered / calls) * 1_000) / 10
    return { calls, answered, asr_percent }
  }
}
