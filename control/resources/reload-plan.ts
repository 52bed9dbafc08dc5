/** What becomes of calls when the dispatcher sets are read again. */
import type { ChangeDeps } from '../changes/kinds.ts'
import { timeToText } from '../../schema/columns.ts'
import type { Plan } from '../changes/change.ts'

interface Reloaded {
  readonly message: string
  /** `would_reload`: a dry run. */
  readonly status: 'synchronized' | 'would_reload'
}

export const planReload = ({
  engine,
  now,
}: Pick<ChangeDeps, 'engine' | 'now'>): Plan<Reloaded> => ({
  target: { kind: 'dispatcher_sets', id: 'all' },
  before: null,
  after: { loaded_at: timeToText(now()) },
  effect: 'This process reads all dispatcher sets and routes from the database again.',
  affected: { sets: engine.dispatcher.status().length },
  undo: 'none',
  preview: { message: 'The dispatcher sets would be reloaded.', status: 'would_reload' },
  async apply() {
    await engine.dispatcher.reload()
    await engine.reloadRouting()
    return { message: 'The dispatcher sets were reloaded.', status: 'synchronized' }
  },
})
