/** Media rules that are stored but need a relay, where there is none: they were written with one. */
import type { Log } from '../../schema/contracts/log.ts'
import type { Store } from '../../schema/open.ts'
import { all } from '../../schema/sql/query.ts'
import { mediaRulesOf } from '../../schema/rules/media.ts'

/** At a start, one line for each kind of resource. */
export async function noteRulesWithoutRelay(store: Store, log: Log): Promise<void> {
  for (const [table, noun] of tables) {
    const columns = ['media', 'media_profile', 'codecs', 'dtmf'] as const
    const rows = await all(store, store.db.selectFrom(table).select(columns))
    const idle = rows.filter((row) => {
      const rules = mediaRulesOf(row)
      if (rules === undefined) return false
      const { policy, profile, codecs, dtmf } = rules
      const isPlain = policy === null || policy === 'bypass'
      return !isPlain || profile !== 'auto' || codecs !== null || dtmf !== 'auto'
    })
    if (idle.length > 0)
      log('warn', `media rules of ${idle.length} ${noun} need RTPENGINE, and have no effect`)
  }
}

const tables = [
  ['carrier', 'carriers'],
  ['dispatcher_set', 'dispatcher sets'],
  ['extension', 'extensions'],
  ['tenant', 'tenants'],
  ['ai_agent', 'AI agents'],
] as const
