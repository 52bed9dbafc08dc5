/**
 * Proposals as rows. Only this store writes them; each change of state is one conditional UPDATE.
 */
import type { Insertable, Selectable } from 'kysely'
import { timeToText } from '../../../schema/columns.ts'
import type { Store } from '../../../schema/storage/store.ts'
import { all, execute, first, readApart } from '../../../schema/sql/query.ts'
import type { ChangeProposalTable } from '../../../schema/tables/changes.ts'
import type { ProposalState } from '../../../schema/contracts/field-values.ts'
import type { Json } from '../../changes/kinds.ts'
import { pageOf } from '../../http/rows.ts'
import { timeOrNull } from '../../http/view-fields.ts'

export type ProposalRow = Selectable<ChangeProposalTable> & { readonly tenant_slug: string | null }
export type NewProposalRow = Insertable<ChangeProposalTable>

/** The columns that describe the change to a person. */
export type ProposedEffect = Pick<
  ProposalRow,
  'effect' | 'affected' | 'previous_state' | 'undo' | 'risk' | 'plan_digest' | 'target'
>

export type ProposalDecision = Pick<
  ProposalRow,
  'decided_at' | 'decided_by' | 'decided_by_name' | 'decided_via' | 'note'
>

export type ProposalOutcome = Pick<ProposalRow, 'settled_at' | 'change_id' | 'failure'>

export interface ProposalFilter {
  /** Only proposals of this tenant; null for all. */
  readonly tenantId: number | null
  readonly state?: ProposalState | undefined
}

/** Rows of one step of maintenance. */
const BATCH = 100

export class ProposalStore {
  readonly #store: Store

  constructor(store: Store) {
    this.#store = store
  }

  /** Newest first. */
  async list(filter: ProposalFilter, slice: { readonly limit: number; readonly offset: number }) {
    const matching = this.#rows()
      .$if(filter.tenantId !== null, (query) => query.where('tenant_id', '=', filter.tenantId))
      .$if(filter.state !== undefined, (query) => query.where('state', '=', filter.state ?? 'open'))
      .orderBy('proposal.id', 'desc')
    return readApart(this.#store, filter.tenantId, () => pageOf(this.#store, matching, slice))
  }

  /** A proposal outside `tenantId` does not exist for the caller; null for all proposals. */
  find(uuid: string, tenantId: number | null): Promise<ProposalRow | undefined> {
    const query = this.#rows()
      .where('uuid', '=', uuid)
      .$if(tenantId !== null, (rows) => rows.where('tenant_id', '=', tenantId))
    return first(this.#store, query)
  }

  /** The open proposal of the same change by the same credential. */
  openOf(actor: string, argumentsDigest: string): Promise<ProposalRow | undefined> {
    const query = this.#rows()
      .where('actor', '=', actor)
      .where('arguments_digest', '=', argumentsDigest)
      .where('state', '=', 'open')
    return first(this.#store, query)
  }

  async countOpen(by: { readonly actor: string } | { readonly tenantId: number | null }) {
    const query = this.#store.db
      .selectFrom('change_proposal')
      .select((row) => row.fn.countAll<number>().as('n'))
      .where('state', '=', 'open')
    const counted =
      'actor' in by
        ? query.where('actor', '=', by.actor)
        : query.where('tenant_id', 'is not distinct from', by.tenantId)
    return (await first(this.#store, counted))?.n ?? 0
  }

  async insert(row: NewProposalRow): Promise<void> {
    await execute(this.#store, this.#store.db.insertInto('change_proposal').values(row))
  }

  /** Stores another effect. False: the proposal is not open, or has another revision. */
  async show(uuid: string, revision: number, shown: ProposedEffect): Promise<boolean> {
    return this.#changed(uuid, { ...shown, revision: revision + 1 }, revision)
  }

  /** Decides. Of several writers, one finds the proposal open with this revision. */
  claim(
    uuid: string,
    state: 'approved' | 'refused',
    revision: number | null,
    made: ProposalDecision,
  ) {
    return this.#changed(uuid, { ...made, state }, revision)
  }

  async #changed(
    uuid: string,
    columns: Partial<Omit<ProposalRow, 'id' | 'tenant_slug'>>,
    revision: number | null,
  ): Promise<boolean> {
    const query = this.#store.db
      .updateTable('change_proposal')
      .set(columns)
      .where('uuid', '=', uuid)
      .where('state', '=', 'open')
      .$if(revision !== null, (rows) => rows.where('revision', '=', revision ?? 0))
    return (await execute(this.#store, query)) > 0
  }

  /** Notes the outcome of an approved or refused one, once. */
  async settle(uuid: string, settlement: ProposalOutcome): Promise<boolean> {
    const state = settlement.failure === null ? {} : { state: 'failed' as const }
    const query = this.#store.db
      .updateTable('change_proposal')
      .set({ ...settlement, ...state })
      .where('uuid', '=', uuid)
      .where('state', 'in', ['approved', 'refused'])
      .where('settled_at', 'is', null)
    return (await execute(this.#store, query)) > 0
  }

  /** Ends open ones whose time has come. Each is returned to one caller. */
  async expire(now: number): Promise<readonly ProposalRow[]> {
    const due = this.#store.db
      .selectFrom('change_proposal')
      .select('uuid')
      .where('state', '=', 'open')
      .where('expires_at', '<=', now)
      .orderBy('expires_at')
      .limit(BATCH)
    const expired: ProposalRow[] = []
    for (const { uuid } of await all(this.#store, due)) {
      const query = this.#store.db
        .updateTable('change_proposal')
        .set({ state: 'expired', settled_at: now })
        .where('uuid', '=', uuid)
        .where('state', '=', 'open')
      const row = (await execute(this.#store, query)) > 0 ? await this.find(uuid, null) : undefined
      if (row !== undefined) expired.push(row)
    }
    return expired
  }

  /** Approved before that time, without an outcome. */
  unsettled(before: number): Promise<readonly ProposalRow[]> {
    const query = this.#rows()
      .where('state', '=', 'approved')
      .where('settled_at', 'is', null)
      .where('decided_at', '<', before)
      .orderBy('decided_at')
    return all(this.#store, query.limit(BATCH))
  }

  /** The change that was made on a proposal: there is one at most. */
  async changeOn(uuid: string): Promise<string | undefined> {
    const query = this.#store.db
      .selectFrom('change_entry')
      .select('change_id')
      .where('proposal_id', '=', uuid)
    return (await first(this.#store, query))?.change_id
  }

  #rows() {
    return this.#store.db
      .selectFrom('change_proposal as proposal')
      .leftJoin('tenant', 'tenant.id', 'proposal.tenant_id')
      .selectAll('proposal')
      .select('tenant.slug as tenant_slug')
  }
}

export type ProposalView = ReturnType<typeof proposalView>

export const proposalView = (row: ProposalRow) => ({
  proposal_id: row.uuid,
  at: timeToText(row.at),
  tenant_slug: row.tenant_slug,
  proposed_by: row.actor,
  proposed_by_name: row.actor_name,
  tool: row.tool,
  arguments: argumentsOf(row),
  reason: row.reason,
  effect: row.effect,
  target: row.target,
  affected: JSON.parse(row.affected) as Readonly<Record<string, number>>,
  previous_state: JSON.parse(row.previous_state) as Json,
  undo: row.undo,
  risk: row.risk,
  revision: row.revision,
  state: row.state,
  expires_at: timeToText(row.expires_at),
  decided_at: timeOrNull(row.decided_at),
  decided_by: row.decided_by,
  decided_by_name: row.decided_by_name,
  decided_via: row.decided_via,
  note: row.note,
  change_id: row.change_id,
  failure: row.failure,
})

/** Only the store writes them, as an object. */
export const argumentsOf = (row: Pick<ProposalRow, 'arguments'>) =>
  JSON.parse(row.arguments) as Readonly<Record<string, Json>>
