/** The whole work on a deck, in whichever thread: preview, diff, import and undo. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { type Tables, execute, first, insert } from '../../../schema/sql/query.ts'
import { writeWithinLimits } from '../../auth/tenant-limits.ts'
import type { RequestScope } from '../../auth/tenants.ts'
import { badRequest, conflict, notFound } from '../../http/api-error.ts'
import { refuseUncounted } from '../braked.ts'
import { refuseDatedPrices } from '../dated-prices.ts'
import { periodsIn } from '../plan-periods.ts'
import type { ChangedRates } from '../rate-import.ts'
import { type NamedPlan, planFor } from '../rate-plan-reference.ts'
import { deckChanges, type DeckOrder, endOfOthers } from './deck-changes.ts'
import { type ChangeCounts, type ChangedRate, DeckDiff, priceOf } from './deck-diff.ts'
import type { RateChangeKind } from './deck-changes.ts'
import { type Losses, lossesBy, type PriceList } from './deck-margins.ts'
import { deckMapping, type DeckMapping, type WrittenMapping } from './deck-mapping.ts'
import { PartWriter } from './deck-parts.ts'
import { type DeckPreview, previewDeck } from './deck-preview.ts'
import { readDeck, type ReadDeck } from './deck-reader.ts'
import { undoDeck } from './deck-undo.ts'
import { inForce, planRates } from './plan-rates.ts'
import { RateWriter } from './rate-writer.ts'

/** Plain data: it is sent to the thread. */
export interface DeckWork {
  readonly kind: 'preview' | 'diff' | 'import'
  /** The bytes as they arrived. */
  readonly table: Uint8Array
  readonly plan: NamedPlan
  /** Absent: as the plan remembers it. */
  readonly mapping?: WrittenMapping | undefined
  readonly mode: DeckOrder['mode']
  readonly allowsDefault: boolean
  readonly fileName?: string | undefined
  /** The kinds of changes that a diff shows, and how many. */
  readonly show: readonly RateChangeKind[]
  readonly limit: number
  readonly scope: RequestScope
}

export interface UndoWork {
  readonly kind: 'undo'
  readonly deckId: number
  readonly scope: RequestScope
}

export interface DeckReport {
  readonly lines: number
  readonly imported: number
  readonly repeated: number
  readonly skipped: number
  readonly expanded: number
  readonly counts: ChangeCounts
  readonly shortNotice: number
  readonly warnings: readonly string[]
}

export type DeckOutcome =
  | { readonly kind: 'preview'; readonly preview: DeckPreview }
  | {
      readonly kind: 'diff'
      readonly report: DeckReport
      readonly changes: readonly ChangedRate[]
      readonly losses: Losses
    }
  | {
      readonly kind: 'import'
      readonly report: DeckReport
      readonly stored: StoredDeck
      readonly changed: ChangedRates
    }
  | { readonly kind: 'undo'; readonly restored: number; readonly changed: ChangedRates }

export interface StoredDeck {
  readonly id: number
  readonly created: number
  readonly updated: number
  readonly removed: number
}

/** How far the work is. */
export interface DeckProgress {
  readonly stage: 'reading' | 'comparing' | 'storing'
  /** Lines, or rates, that are done. */
  readonly done: number
  /** Undefined: not known yet. */
  readonly of?: number
}

export type TellProgress = (progress: DeckProgress) => void

/** Throws an `ApiError` for a deck that cannot be read. */
export async function workOnDeck(
  store: Tables,
  work: DeckWork | UndoWork,
  tell: TellProgress = () => undefined,
): Promise<DeckOutcome> {
  if (work.kind === 'undo') return undo(store, work, tell)
  const plan = await planOfDeck(store, work.plan, work.scope)
  if (work.kind === 'preview') {
    const preview = await previewDeck(work.table, work.mapping, plan)
    return { kind: 'preview', preview }
  }
  const mapping = mappingOf(work, plan.remembered)
  const { currency, zone, periods } = plan
  const options = { mapping, currency, zone, periods, allowsDefault: work.allowsDefault }
  const deck = await readDeck(work.table, options, nextTurn, (done) =>
    tell({ stage: 'reading', done }),
  )
  giveBack(work.table)
  return work.kind === 'diff'
    ? diff(store, plan, deck, work, tell)
    : importDeck(store, plan, deck, work, tell)
}

/** A large table is read no more, while its rates are stored. Small ones share their memory. */
function giveBack({ buffer, byteLength }: Uint8Array): void {
  if (byteLength === buffer.byteLength && buffer instanceof ArrayBuffer) buffer.transfer(0)
}

interface PlanWithMapping {
  readonly id: number
  readonly currency: string
  readonly zone: string
  /** Names of its periods. */
  readonly periods: readonly string[]
  readonly tenantId: number | null
  readonly remembered: WrittenMapping | undefined
}

async function planOfDeck(
  store: Tables,
  named: NamedPlan,
  scope: RequestScope,
): Promise<PlanWithMapping> {
  const id = await planFor(store, named, scope)
  const query = store.db
    .selectFrom('rate_plan')
    .leftJoin('tenant', 'tenant.id', 'rate_plan.tenant_id')
    .select(['currency', 'tenant_id', 'deck_mapping', 'periods'])
    .select(['rate_plan.time_zone as zone', 'tenant.time_zone as tenantZone'])
    .where('rate_plan.id', '=', id)
  const row = await first(store, query)
  if (row === undefined) throw notFound('Rate plan')
  const remembered =
    row.deck_mapping === null ? undefined : (JSON.parse(row.deck_mapping) as WrittenMapping)
  return {
    id,
    currency: row.currency,
    zone: row.zone ?? row.tenantZone ?? 'UTC',
    periods: periodsIn(row.periods),
    tenantId: row.tenant_id,
    remembered,
  }
}

function mappingOf({ mapping }: DeckWork, remembered: WrittenMapping | undefined): DeckMapping {
  const written = mapping ?? remembered
  if (written === undefined)
    throw badRequest('The deck has no mapping', [
      {
        path: 'mapping',
        message:
          'is required: take that of POST /rates/decks/preview, or keep one as deck_mapping of ' +
          'the rate plan',
      },
    ])
  return deckMapping.parse(written)
}

async function diff(
  store: Tables,
  plan: PlanWithMapping,
  deck: ReadDeck,
  { mode, scope, show, limit }: DeckWork,
  tell: TellProgress,
): Promise<DeckOutcome> {
  const { now } = scope
  const found = new DeckDiff(now)
  const at = endOfOthers(deck.rates, now) ?? now
  const before: PriceList = new Map()
  const after: PriceList = new Map()
  let done = 0
  const stored = planRates(store, plan.id, nextTurn)
  for await (const changes of deckChanges(deck.rates, stored, { mode, now })) {
    for (const change of changes) {
      found.add(change)
      const { prefix, period, rate, kind } = change
      // Losses are those of the prices that hold in no period.
      if (period !== null) continue
      const old = change.before === undefined ? undefined : inForce([change.before], at)
      if (old !== undefined) before.set(prefix, priceOf(old))
      const next = kind === 'gone' ? (mode === 'replace' ? undefined : old) : rate?.terms
      if (next !== undefined) after.set(prefix, priceOf(next))
    }
    done += changes.length
    tell({ stage: 'comparing', done, of: deck.rates.length })
  }
  const losses = await lossesBy(store, plan, { before, after, at }, nextTurn)
  return {
    kind: 'diff',
    report: reportOf(deck, found),
    changes: found.largest(show, limit),
    losses,
  }
}

const reportOf = (deck: ReadDeck, found: DeckDiff): DeckReport => ({
  lines: deck.lines,
  imported: deck.rates.length,
  repeated: deck.repeated,
  skipped: deck.skipped,
  expanded: deck.expanded,
  counts: { ...found.counts },
  shortNotice: found.shortNotice,
  warnings: [...warningsOf(deck), ...found.warnings],
})

function warningsOf({ rates, repeated, rounded, skipped }: ReadDeck): readonly string[] {
  const warnings: string[] = []
  if (skipped > 0)
    warnings.push(
      `${skipped === 1 ? '1 line is' : `${skipped} lines are`} left out, as skip_lines says`,
    )
  if (rates.at(0)?.prefix === '')
    warnings.push('a rate has no prefix: every number that no other rate prices has this price')
  if (repeated > 0)
    warnings.push(`${repeated} prefixes stand there twice, with the same terms: each counts once`)
  if (rounded > 0) warnings.push(`${rounded} prices are rounded to six decimals`)
  return warnings
}

/** Decks of a plan that are kept, with what they have changed. */
const MAX_KEPT_DECKS = 20

async function importDeck(
  store: Tables,
  plan: PlanWithMapping,
  deck: ReadDeck,
  work: DeckWork,
  tell: TellProgress,
): Promise<DeckOutcome> {
  const { scope, mode } = work
  const plans = [plan.id]
  const result = await writeWithinLimits(store, scope, ['rates'], async () => {
    await refuseUncounted(store, { column: 'rate_plan_id', value: plan.id }, 'caps', scope)
    await refuseOtherCurrency(store, plan)
    return refuseDatedPrices(store, plans, () => storeDeck(store, plan.id, deck, work, tell))
  })
  const few = mode === 'merge' && deck.rates.length <= FEW_RATES
  const prefixes = [...new Set(deck.rates.slice(0, FEW_RATES).map(({ prefix }) => prefix))]
  const changed: ChangedRates = {
    plans,
    prefixes: few ? prefixes.map((prefix) => ({ planId: plan.id, prefix })) : undefined,
  }
  return { kind: 'import', ...result, changed }
}

const FEW_RATES = 50

/** 404, 409: the plan is gone, or has another currency than that in which the deck was read. */
async function refuseOtherCurrency(
  store: Tables,
  { id, currency }: PlanWithMapping,
): Promise<void> {
  const query = store.db.selectFrom('rate_plan').select('currency').where('id', '=', id)
  const row = await first(store, query)
  if (row === undefined) throw notFound('Rate plan')
  if (row.currency !== currency)
    throw conflict('changed_since', 'The rate plan has another currency meanwhile: import again')
}

/** In the open transaction. A server may run it again. */
async function storeDeck(
  store: Tables,
  planId: number,
  deck: ReadDeck,
  { mode, scope, fileName }: DeckWork,
  tell: TellProgress,
): Promise<{ readonly report: DeckReport; readonly stored: StoredDeck }> {
  const { now, actor } = scope
  const found = new DeckDiff(now)
  const id = await insert(
    store,
    store.db
      .insertInto('rate_deck')
      .values({
        rate_plan_id: planId,
        file_name: fileName ?? null,
        mode,
        lines: deck.lines,
        imported: deck.rates.length,
        created: 0,
        updated: 0,
        removed: 0,
        imported_by: actor,
        imported_at: now,
        undone_by: null,
        undone_at: null,
      })
      .returning('id'),
  )
  const parts = new PartWriter(store, id)
  const rates = new RateWriter(store, planId)
  const counts = { created: 0, updated: 0, removed: 0 }
  let done = 0
  for await (const changes of deckChanges(deck.rates, planRates(store, planId), { mode, now })) {
    for (const change of changes) {
      found.add(change)
      for (const each of change.writes) {
        const { before, after } = each
        if (before === undefined) counts.created += 1
        else if (after === undefined) counts.removed += 1
        else counts.updated += 1
        if (parts.add(each)) await parts.flush()
        const isFull = after !== undefined ? rates.put(each, after) : rates.remove(before?.id ?? 0)
        if (isFull) await rates.flush()
      }
    }
    done += changes.length
    tell({ stage: 'storing', done, of: deck.rates.length })
  }
  await rates.flush()
  await parts.flush()
  await execute(store, store.db.updateTable('rate_deck').set(counts).where('id', '=', id))
  await forgetOldDecks(store, planId)
  return { report: reportOf(deck, found), stored: { id, ...counts } }
}

async function forgetOldDecks(store: Tables, planId: number): Promise<void> {
  const kept = store.db
    .selectFrom('rate_deck')
    .select('id')
    .where('rate_plan_id', '=', planId)
    .orderBy('id', 'desc')
    .offset(MAX_KEPT_DECKS)
    .limit(1)
  const oldest = await first(store, kept)
  if (oldest === undefined) return
  const old = store.db
    .deleteFrom('rate_deck')
    .where('rate_plan_id', '=', planId)
    .where('id', '<=', oldest.id)
  await execute(store, old)
}

async function undo(
  store: Tables,
  { deckId, scope }: UndoWork,
  tell: TellProgress,
): Promise<DeckOutcome> {
  const planId = await planOfStored(store, deckId, scope)
  const restored = await writeWithinLimits(store, scope, ['rates'], async () => {
    await refuseUncounted(store, { column: 'rate_plan_id', value: planId }, 'caps', scope)
    return undoDeck(store, { deckId, planId, scope }, (done, of) =>
      tell({ stage: 'storing', done, of }),
    )
  })
  return { kind: 'undo', restored, changed: { plans: [planId], prefixes: undefined } }
}

/** 404: there is none in the scope. */
async function planOfStored(
  store: Tables,
  deckId: number,
  { tenantId }: RequestScope,
): Promise<number> {
  const query = store.db
    .selectFrom('rate_deck')
    .innerJoin('rate_plan', 'rate_plan.id', 'rate_deck.rate_plan_id')
    .select('rate_plan_id')
    .where('rate_deck.id', '=', deckId)
    .$if(tenantId !== null, (rows) => rows.where('tenant_id', '=', tenantId))
  const row = await first(store, query)
  if (row === undefined) throw notFound('Deck')
  return row.rate_plan_id
}
