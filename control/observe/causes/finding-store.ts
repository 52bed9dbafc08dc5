/** Findings as rows: open ones, their history, and what people have said of them. */
import { type Selectable, sql } from 'kysely'
import { timeToText } from '../../../schema/columns.ts'
import { all, execute, first, insert } from '../../../schema/sql/query.ts'
import type { Store } from '../../../schema/storage/store.ts'
import type {
  FindingMarkTable,
  FindingSide,
  FindingTable,
} from '../../../schema/tables/findings.ts'
import { type Finding, findingViewOf, type FindingKind, type FindingView } from './finding.ts'
import type { OwnedFinding } from './finding-life.ts'

export type FindingRow = Selectable<FindingTable>

/** The state of a finding for one side. */
export type FindingState = 'open' | 'acknowledged' | 'snoozed' | 'closed'

/** A finding with what the reader's side, and the change that deals with it, say. */
export interface MarkedFinding extends FindingRow {
  readonly mark: Selectable<FindingMarkTable> | undefined
}

/** Who reads or marks. */
export interface FindingReader {
  readonly tenantId: number | null
  readonly now: number
}

export interface FindingFilter {
  readonly states: readonly FindingState[] | undefined
  readonly kinds: readonly FindingKind[]
  /** The reader may know extensions. */
  readonly hasExtensions: boolean
  /** When it was opened, milliseconds UTC; `before` is exclusive. */
  readonly from: number | undefined
  readonly before: number | undefined
  /** Ids below it; undefined: from the newest on. */
  readonly below: number | undefined
  readonly limit: number
}

/** Marks as the state that follows from them. */
export type NewMark = Pick<
  FindingMarkTable,
  'state' | 'until' | 'note' | 'actor' | 'actor_name' | 'at'
>

/** Rows of one statement. */
const SLICE = 200
/** Rows that a search may rewrite, the rest keeps the text of an earlier one. */
const MAX_REWRITTEN = 100
const KEPT_DAYS = 90
const MAX_CLOSED = 100_000
const FORGOTTEN = 500
const DAY_MS = 86_400_000

const sideOf = (tenantId: number | null): FindingSide => (tenantId === null ? 'platform' : 'tenant')

export class FindingStore {
  readonly #store: Store

  constructor(store: Store) {
    this.#store = store
  }

  /** All open ones of all owners. */
  open(): Promise<readonly FindingRow[]> {
    const query = this.#store.db.selectFrom('finding').selectAll().where('closed_at', 'is', null)
    return all(this.#store, query)
  }

  /**
   * Opens a finding. A snooze of the last one of its name goes on: what comes back before it ends
   * is what the person meant.
   */
  async add({ tenantId, identity, finding }: OwnedFinding, now: number): Promise<FindingRow> {
    const row = {
      tenant_id: tenantId,
      identity,
      opened_at: now,
      missed_since: null,
      closed_at: null,
      ...columnsOf(finding),
    }
    const { db } = this.#store
    const id = await insert(this.#store, db.insertInto('finding').values(row).returning('id'))
    const last = await this.#lastClosed(tenantId, identity)
    const marks = last === undefined ? [] : await this.snoozesOf(last.id, now)
    for (const mark of marks)
      await execute(this.#store, db.insertInto('finding_mark').values({ ...mark, finding_id: id }))
    return { ...row, id }
  }

  #lastClosed(tenantId: number | null, identity: string) {
    const query = this.#store.db
      .selectFrom('finding')
      .select('id')
      .where('identity', '=', identity)
      .where('tenant_id', tenantId === null ? 'is' : '=', tenantId)
      .where('closed_at', 'is not', null)
      .orderBy('closed_at', 'desc')
      .limit(1)
    return first(this.#store, query)
  }

  /** Snoozes that have not ended. */
  snoozesOf(id: number, now: number): Promise<readonly Selectable<FindingMarkTable>[]> {
    const query = this.#store.db
      .selectFrom('finding_mark')
      .selectAll()
      .where('finding_id', '=', id)
      .where('state', '=', 'snoozed')
      .where('until', '>', now)
    return all(this.#store, query)
  }

  /** A search has found them again, some with other figures. */
  async see(
    seen: readonly { readonly row: FindingRow; readonly finding: Finding }[],
  ): Promise<void> {
    const found = seen.filter(({ row }) => row.missed_since !== null).map(({ row }) => row.id)
    await this.#set(found, { missed_since: null })
    const changed = seen.flatMap(({ row, finding }) => {
      const columns = columnsOf(finding)
      const isSame = Object.entries(columns).every(
        ([name, value]) => row[name as keyof typeof columns] === value,
      )
      return isSame ? [] : [{ id: row.id, columns }]
    })
    for (const { id, columns } of changed.slice(0, MAX_REWRITTEN))
      await execute(
        this.#store,
        this.#store.db.updateTable('finding').set(columns).where('id', '=', id),
      )
  }

  /** A search does not find them: since now, unless one before has missed them, too. */
  async miss(rows: readonly FindingRow[], now: number, isAfterGap: boolean): Promise<void> {
    const missed = rows.filter(({ missed_since: since }) => isAfterGap || since === null)
    await this.#set(
      missed.map(({ id }) => id),
      { missed_since: now },
    )
  }

  close(rows: readonly FindingRow[], now: number): Promise<void> {
    return this.#set(
      rows.map(({ id }) => id),
      { closed_at: now },
    )
  }

  async #set(
    ids: readonly number[],
    values: Partial<Pick<FindingRow, 'missed_since' | 'closed_at'>>,
  ): Promise<void> {
    for (let start = 0; start < ids.length; start += SLICE) {
      const query = this.#store.db.updateTable('finding').set(values)
      await execute(this.#store, query.where('id', 'in', ids.slice(start, start + SLICE)))
    }
  }

  /** Deletes some of the old ones, and of those beyond the most that are kept. */
  async forget(now: number): Promise<void> {
    const closed = this.#store.db
      .selectFrom('finding')
      .select(['id', 'closed_at'])
      .where('closed_at', 'is not', null)
    const old = closed
      .where('closed_at', '<', now - KEPT_DAYS * DAY_MS)
      .orderBy('closed_at')
      .limit(FORGOTTEN)
    const beyond = closed.orderBy('closed_at', 'desc').limit(FORGOTTEN).offset(MAX_CLOSED)
    const ids = [...(await all(this.#store, old)), ...(await all(this.#store, beyond))].map(
      ({ id }) => id,
    )
    for (let start = 0; start < ids.length; start += SLICE)
      await execute(
        this.#store,
        this.#store.db.deleteFrom('finding').where('id', 'in', ids.slice(start, start + SLICE)),
      )
  }

  /** Open findings of these names, as the reader sees them. */
  async openOf(
    identities: readonly string[],
    reader: FindingReader,
  ): Promise<readonly MarkedFinding[]> {
    if (identities.length === 0) return []
    const query = this.#visible(reader)
      .where('finding.closed_at', 'is', null)
      .where('finding.identity', 'in', identities)
    return (await all(this.#store, query)).map(markedOf)
  }

  async find(id: number, reader: FindingReader): Promise<MarkedFinding | undefined> {
    const row = await first(this.#store, this.#visible(reader).where('finding.id', '=', id))
    return row && markedOf(row)
  }

  /** The newest first, one more than asked for if there are more. */
  async list(filter: FindingFilter, reader: FindingReader): Promise<readonly MarkedFinding[]> {
    const { states, kinds, hasExtensions, from, before, below, limit } = filter
    const wanted = new Set(states)
    const query = this.#visible(reader)
      .where('finding.kind', 'in', kinds)
      .$if(!hasExtensions, (some) =>
        some.where((row) =>
          row.or([
            row('finding.kind', '!=', 'registration'),
            row('finding.subject', 'like', 'carrier %'),
          ]),
        ),
      )
      .$if(states !== undefined, (some) =>
        some.where((row) =>
          row.or([
            ...(wanted.has('closed') ? [row('finding.closed_at', 'is not', null)] : []),
            ...(['open', 'acknowledged', 'snoozed'] as const)
              .filter((state) => wanted.has(state))
              .map((state) =>
                row.and([row('finding.closed_at', 'is', null), hasState(state, reader.now)]),
              ),
          ]),
        ),
      )
      .$if(from !== undefined, (some) => some.where('finding.opened_at', '>=', from ?? 0))
      .$if(before !== undefined, (some) => some.where('finding.opened_at', '<', before ?? 0))
      .$if(below !== undefined, (some) => some.where('finding.id', '<', below ?? 0))
      .orderBy('finding.id', 'desc')
      .limit(limit + 1)
    return (await all(this.#store, query)).map(markedOf)
  }

  #visible({ tenantId }: FindingReader) {
    const query = this.#store.db
      .selectFrom('finding')
      .leftJoin('finding_mark as mark', (join) =>
        join.onRef('mark.finding_id', '=', 'finding.id').on('mark.side', '=', sideOf(tenantId)),
      )
      .selectAll('finding')
      .select(['mark.state as mark_state', 'mark.until', 'mark.note', 'mark.actor'])
      .select(['mark.actor_name', 'mark.at'])
    return tenantId === null ? query : query.where('finding.tenant_id', '=', tenantId)
  }

  /** The reader's side says something of it, in place of what it has said before. */
  async mark(id: number, { tenantId }: FindingReader, mark: NewMark): Promise<void> {
    await this.unmark(id, { tenantId })
    const row = { ...mark, finding_id: id, side: sideOf(tenantId) }
    await execute(this.#store, this.#store.db.insertInto('finding_mark').values(row))
  }

  async unmark(id: number, { tenantId }: Pick<FindingReader, 'tenantId'>): Promise<void> {
    const query = this.#store.db.deleteFrom('finding_mark').where('finding_id', '=', id)
    await execute(this.#store, query.where('side', '=', sideOf(tenantId)))
  }
}

const hasState = (state: 'open' | 'acknowledged' | 'snoozed', now: number) => {
  switch (state) {
    case 'acknowledged':
      return sql<boolean>`mark.state = 'acknowledged'`
    case 'snoozed':
      return sql<boolean>`(mark.state = 'snoozed' AND mark.until > ${now})`
    case 'open':
      return sql<boolean>`(mark.state IS NULL OR (mark.state = 'snoozed' AND mark.until <= ${now}))`
  }
}

type JoinedFinding = FindingRow & {
  readonly [name in 'until' | 'note' | 'actor' | 'actor_name' | 'at']: FindingMarkTable[name] | null
} & { readonly mark_state: FindingMarkTable['state'] | null }

function markedOf(row: JoinedFinding): MarkedFinding {
  const { mark_state: state, until, note, actor, actor_name, at, ...finding } = row
  const isMarked = state !== null && actor !== null && at !== null
  const side = 'platform' as const
  return {
    ...finding,
    mark: isMarked
      ? { finding_id: finding.id, side, state, until, note, actor, actor_name, at }
      : undefined,
  }
}

/** The state for the reader whose mark it has. */
export function stateOf({ closed_at: closedAt, mark }: MarkedFinding, now: number): FindingState {
  if (closedAt !== null) return 'closed'
  if (mark?.state === 'acknowledged') return 'acknowledged'
  return mark !== undefined && (mark.until ?? 0) > now ? 'snoozed' : 'open'
}

/** Fields of the view, as it was found last. */
export type FindingDetails = Pick<
  FindingView,
  'what' | 'advice' | 'figures' | 'evidence' | 'next' | 'first_step'
> & { readonly seen_since: boolean }

export const detailsOf = ({ details }: Pick<FindingRow, 'details'>): FindingDetails =>
  JSON.parse(details) as FindingDetails

function columnsOf(finding: Finding) {
  const { kind, severity, subject, handled_by: handling, ...view } = findingViewOf(finding, false)
  const { what, advice, figures, evidence, next, first_step } = view
  const seen_since = handling?.seen_since ?? false
  const details: FindingDetails = {
    what,
    advice,
    figures,
    evidence,
    next,
    first_step,
    seen_since,
  }
  return {
    kind,
    severity,
    subject,
    details: JSON.stringify(details),
    first_at: Math.round(finding.firstAt),
    last_at: Math.round(finding.lastAt),
    handled_change_id: finding.handledBy?.change_id ?? null,
  }
}

/** The customer, the carrier or the node, as other events name it. */
function thingOf(subject: string): object {
  const [, kind, name = ''] = /^(customer|carrier|node) (.+)$/s.exec(subject) ?? []
  if (kind === 'customer') return /^\d+$/.test(name) ? { customer_id: Number(name) } : {}
  if (kind === 'node') return { destination: name }
  return kind === 'carrier' ? { carrier: unquoted(name) } : {}
}

/** Subjects name carriers in quotes (`quoted`). */
function unquoted(name: string): string {
  try {
    return String(JSON.parse(name))
  } catch {
    return name
  }
}

/** The data of its webhook events. */
export function toldFinding(row: FindingRow) {
  const { what, advice } = detailsOf(row)
  return {
    id: row.id,
    kind: row.kind,
    severity: row.severity,
    subject: row.subject,
    ...thingOf(row.subject),
    what,
    advice,
    first_at: timeToText(row.first_at),
    opened_at: timeToText(row.opened_at),
  }
}
