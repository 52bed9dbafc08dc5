/**
 * The telephone numbers of the installation in memory: whose each one is, and where calls to it go.
 * It answers by the table `phone_number` as it was at the last reload.
 */
import type { ChangedNumbers } from '../../schema/contracts/changed-rows.ts'
import type { NumberOwner, OwnedNumbers } from '../../schema/contracts/owned-numbers.ts'
import type { CalledNumber } from '../routing/number-decision.ts'
import { OneAtATime } from '../../schema/one-at-a-time.ts'
import { NumberTable } from '../../schema/rules/number-table.ts'

export interface NumberReader {
  /** Reads rows, a slice after the other; undefined: all of them. */
  readonly load: (ids?: readonly number[]) => AsyncIterable<readonly CalledNumber[]>
  /** Reads the ids of the rows of customers. */
  readonly idsOf: (customerIds: readonly number[]) => Promise<readonly number[]>
}

export class NumberDirectory implements OwnedNumbers {
  readonly #reader: NumberReader
  readonly #reloads = new OneAtATime(() => this.#loadAll())
  #table = new NumberTable<CalledNumber>()
  #byId = new Map<number, CalledNumber>()

  constructor(reader: NumberReader) {
    this.#reader = reader
  }

  find(number: string): CalledNumber | undefined {
    return this.#table.find(number)
  }

  /** A call without a customer may present its tenant's numbers that no customer owns. */
  isOwned(number: string, { tenantId, customerId }: NumberOwner): boolean {
    const row = this.#table.find(number)
    if (row?.isActive !== true || row.customerId !== customerId) return false
    return customerId !== null || (tenantId !== null && row.tenantId === tenantId)
  }

  get size(): number {
    return this.#byId.size
  }

  /**
   * Takes over what is stored now; undefined: all of it. Resolves with the customers that own the
   * changed rows, or did so until now; of all rows, with none.
   */
  async reload(changed?: ChangedNumbers): Promise<readonly number[]> {
    if (changed === undefined) {
      await this.#reloads.request()
      return []
    }
    return this.#reloads.between(async () => {
      const ids = changed.of === 'number' ? changed.ids : await this.#idsOf(changed.ids)
      const rows: CalledNumber[] = []
      for await (const slice of this.#reader.load(ids)) rows.push(...slice)
      // From here on in one step: calls see each row as it was, or as it is.
      const owners = new Set<number>()
      for (const id of ids) addOwner(owners, this.#forget(id))
      for (const row of rows) addOwner(owners, this.#take(row))
      return [...owners]
    })
  }

  /** Builds a new table, while calls use the present one. */
  async #loadAll(): Promise<void> {
    const table = new NumberTable<CalledNumber>()
    const byId = new Map<number, CalledNumber>()
    for await (const slice of this.#reader.load())
      for (const row of slice) {
        table.add(row)
        byId.set(row.id, row)
      }
    this.#table = table
    this.#byId = byId
  }

  /** Finds the rows that are these customers', and those that were until now. */
  async #idsOf(customerIds: readonly number[]): Promise<readonly number[]> {
    const ids = new Set(await this.#reader.idsOf(customerIds))
    const among = new Set<number | null>(customerIds)
    for (const { id, customerId } of this.#byId.values()) if (among.has(customerId)) ids.add(id)
    return [...ids]
  }

  #take(row: CalledNumber): CalledNumber {
    this.#byId.set(row.id, row)
    this.#table.add(row)
    return row
  }

  #forget(id: number): CalledNumber | undefined {
    const row = this.#byId.get(id)
    if (row === undefined) return undefined
    this.#byId.delete(id)
    this.#table.delete(row)
    return row
  }
}

function addOwner(owners: Set<number>, row: CalledNumber | undefined): void {
  if (row?.customerId != null) owners.add(row.customerId)
}
