/** Brings a plan back to what it was before a deck, unless somebody has changed it since. */
import { type Tables, execute, first } from '../../../schema/sql/query.ts'
import type { RequestScope } from '../../auth/tenants.ts'
import { ApiError, conflict } from '../../http/api-error.ts'
import { isSame } from './deck-changes.ts'
import { type PastChange, pastChanges } from './deck-parts.ts'
import { byRateKey } from './deck-reader.ts'
import { type PlanRate, planRates } from './plan-rates.ts'
import { RateWriter } from './rate-writer.ts'

interface Undoing {
  readonly deckId: number
  readonly planId: number
  readonly scope: RequestScope
}

const CHANGES_OF_PROGRESS = 10_000
const MAX_NAMED_PREFIXES = 10

/** In the open transaction. Resolves with the number of rates that are as they were. */
export async function undoDeck(
  store: Tables,
  { deckId, planId, scope }: Undoing,
  progress: (done: number) => void,
): Promise<number> {
  await refuseOlder(store, deckId, planId)
  const writer = new RateWriter(store, planId)
  const touched: string[] = []
  let conflicts = 0
  let done = 0
  for await (const { change, stored } of beside(
    pastChanges(store, deckId),
    planRates(store, planId),
  )) {
    const isAsLeft =
      stored === undefined ? change.after === undefined : isSame(stored, change.after)
    if (!isAsLeft) {
      conflicts += 1
      if (touched.length < MAX_NAMED_PREFIXES) touched.push(change.prefix)
    } else if (change.before !== undefined) await writer.put(change, change.before)
    else if (stored !== undefined) await writer.remove(stored.id)
    done += 1
    if (done % CHANGES_OF_PROGRESS === 0) progress(done)
  }
  if (conflicts > 0) throw changedSince(conflicts, touched)
  await writer.flush()
  const undone = { undone_by: scope.actor, undone_at: scope.now }
  await execute(store, store.db.updateTable('rate_deck').set(undone).where('id', '=', deckId))
  return done
}

/** 409: it is undone, or there is a later one. */
async function refuseOlder(store: Tables, deckId: number, planId: number): Promise<void> {
  const newest = store.db
    .selectFrom('rate_deck')
    .select('id')
    .where('rate_plan_id', '=', planId)
    .where('undone_at', 'is', null)
    .orderBy('id', 'desc')
    .limit(1)
  const id = (await first(store, newest))?.id
  if (id === deckId) return
  const isOlder = id !== undefined && id > deckId
  throw isOlder
    ? conflict('later_deck', `Deck ${id} was imported later: undo it first`)
    : conflict('already_undone', 'The deck is undone already')
}

const changedSince = (conflicts: number, prefixes: readonly string[]): ApiError =>
  new ApiError(
    409,
    'changed_since',
    `${conflicts} of its rates were changed since, such as those of ${prefixes.join(', ')}. ` +
      'Nothing was changed',
  )

interface ChangeBeside {
  readonly change: PastChange
  /** Undefined: the plan has no such rate. */
  readonly stored: PlanRate | undefined
}

/** Each change with the rate of its prefix, period and start; both are in that order. */
async function* beside(
  changes: AsyncIterable<PastChange>,
  rates: AsyncGenerator<PlanRate>,
): AsyncGenerator<ChangeBeside> {
  const following = async (): Promise<PlanRate | undefined> => {
    const next: IteratorResult<PlanRate, unknown> = await rates.next()
    return next.done === true ? undefined : next.value
  }
  let rate = await following()
  for await (const change of changes) {
    const compare = (one: PlanRate): number => byRateKey(one, change)
    while (rate !== undefined && compare(rate) < 0) rate = await following()
    yield { change, stored: rate !== undefined && compare(rate) === 0 ? rate : undefined }
  }
}
