/** Brings a plan back to what it was before a deck, unless somebody has changed it since. */
import { type Tables, execute, first } from '../../../schema/sql/query.ts'
import type { RequestScope } from '../../auth/tenants.ts'
import { ApiError, conflict } from '../../http/api-error.ts'
import { isSame } from './deck-changes.ts'
import { type PastChange, pastChanges } from './deck-parts.ts'
import { byRateKey } from './deck-rate.ts'
import { type PlanRate, planRates } from './plan-rates.ts'
import { RateWriter } from './rate-writer.ts'

interface Undoing {
  readonly deckId: number
  readonly planId: number
  readonly scope: RequestScope
}

const MAX_NAMED_PREFIXES = 10

/** In the open transaction. Resolves with the number of rates that are as they were. */
export async function undoDeck(
  store: Tables,
  { deckId, planId, scope }: Undoing,
  progress: (done: number, of: number) => void,
): Promise<number> {
  await refuseOlder(store, deckId, planId)
  const changes = await changesOf(store, deckId)
  const writer = new RateWriter(store, planId)
  const touched: string[] = []
  let conflicts = 0
  let done = 0
  for await (const some of beside(pastChanges(store, deckId), planRates(store, planId))) {
    for (const { change, stored } of some) {
      const isAsLeft =
        stored === undefined ? change.after === undefined : isSame(stored, change.after)
      if (!isAsLeft) {
        conflicts += 1
        if (touched.length < MAX_NAMED_PREFIXES) touched.push(change.prefix)
        continue
      }
      const isFull =
        change.before !== undefined
          ? writer.put(change, change.before)
          : stored !== undefined && writer.remove(stored.id)
      if (isFull) await writer.flush()
    }
    done += some.length
    progress(done, changes)
  }
  if (conflicts > 0) throw changedSince(conflicts, touched)
  await writer.flush()
  const undone = { undone_by: scope.actor, undone_at: scope.now }
  await execute(store, store.db.updateTable('rate_deck').set(undone).where('id', '=', deckId))
  return done
}

/** The number of changes that the deck has made. */
async function changesOf(store: Tables, deckId: number): Promise<number> {
  const query = store.db
    .selectFrom('rate_deck')
    .select(['created', 'updated', 'removed'])
    .where('id', '=', deckId)
  const { created = 0, updated = 0, removed = 0 } = (await first(store, query)) ?? {}
  return created + updated + removed
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
  parts: AsyncIterable<readonly PastChange[]>,
  pages: AsyncGenerator<readonly PlanRate[]>,
): AsyncGenerator<readonly ChangeBeside[]> {
  let page: readonly PlanRate[] = []
  let at = 0
  let isOver = false
  for await (const part of parts) {
    const found: ChangeBeside[] = []
    for (const change of part) {
      for (;;) {
        if (at === page.length && !isOver) {
          const next: IteratorResult<readonly PlanRate[], unknown> = await pages.next()
          isOver = next.done === true
          if (next.done !== true) [page, at] = [next.value, 0]
          continue
        }
        const rate = page[at]
        const order = rate === undefined ? 1 : byRateKey(rate, change)
        if (order === 0) found.push({ change, stored: rate })
        else if (order > 0) found.push({ change, stored: undefined })
        if (order >= 0) break
        at += 1
      }
    }
    yield found
  }
}
