/** Keeps the changes of a deck in compressed parts: 500,000 of them need about 5 MB. */
import { deflateRawSync, inflateRawSync } from 'node:zlib'
import { type Tables, all, execute, first } from '../../../schema/sql/query.ts'
import { listOf, type KeptTerms, type RateWrite, termsOf, type TermsList } from './deck-changes.ts'

/** Changes of one part. */
const PART = 5_000
/** A part of the longest descriptions. */
const MAX_PART_BYTES = 16_777_216

type StoredChange = readonly [
  prefix: string,
  start: number | null,
  before: TermsList | null,
  after: TermsList | null,
  /** Absent in decks of an earlier version. */
  period?: string | null,
]

export interface PastChange {
  readonly prefix: string
  readonly period: string | null
  readonly effective_from_at: number | null
  readonly before: KeptTerms | undefined
  readonly after: KeptTerms | undefined
}

/** Writes changes in the order in which they come. */
export class PartWriter {
  readonly #store: Tables
  readonly #deckId: number
  #changes: StoredChange[] = []
  #part = 0

  constructor(store: Tables, deckId: number) {
    this.#store = store
    this.#deckId = deckId
  }

  /** True: `flush` has to follow. */
  add({ prefix, period, effective_from_at: start, before, after }: RateWrite): boolean {
    this.#changes.push([
      prefix,
      start,
      before ? listOf(before) : null,
      after ? listOf(after) : null,
      period,
    ])
    return this.#changes.length >= PART
  }

  async flush(): Promise<void> {
    if (this.#changes.length === 0) return
    const changes = deflateRawSync(JSON.stringify(this.#changes), { level: 1 })
    this.#changes = []
    const { db } = this.#store
    const values = { rate_deck_id: this.#deckId, part: this.#part, changes }
    this.#part += 1
    await execute(this.#store, db.insertInto('rate_deck_part').values(values))
  }
}

/** The changes of a deck in the order of prefixes, periods and starts, a part at a time. */
export async function* pastChanges(
  store: Tables,
  deckId: number,
): AsyncGenerator<readonly PastChange[]> {
  const query = store.db
    .selectFrom('rate_deck_part')
    .select('part')
    .where('rate_deck_id', '=', deckId)
    .orderBy('part')
  for (const { part } of await all(store, query)) {
    const row = await first(
      store,
      store.db
        .selectFrom('rate_deck_part')
        .select('changes')
        .where('rate_deck_id', '=', deckId)
        .where('part', '=', part),
    )
    if (row === undefined) continue
    const text = inflateRawSync(row.changes, { maxOutputLength: MAX_PART_BYTES }).toString()
    yield (JSON.parse(text) as readonly StoredChange[]).map(pastChange)
  }
}

const pastChange = ([prefix, start, before, after, period = null]: StoredChange): PastChange => ({
  prefix,
  period,
  effective_from_at: start,
  before: before === null ? undefined : termsOf(before),
  after: after === null ? undefined : termsOf(after),
})
