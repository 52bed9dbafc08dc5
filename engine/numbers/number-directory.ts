/**
 * The telephone numbers of the installation in memory: whose each one is, and where calls to it go.
 * It answers by the table `phone_number` as it was at the last reload.
 */
import type { ChangedNumbers } from '../../schema/contracts/changed-rows.ts'
import type {
  NumberOwner,
  OwnedNumber,
  OwnedNumbers,
} from '../../schema/contracts/owned-numbers.ts'
import { OneAtATime } from '../../schema/one-at-a-time.ts'
import type { NumberTarget } from './number-store.ts'
import { NumberTable } from './number-table.ts'

/** A row of the table, as the engine knows it. */
export interface DirectoryNumber extends OwnedNumber {
  /** Where calls from outside go; `null`: as routes say. */
  readonly target: NumberTarget | null
}

export interface NumberReader {
  /** Reads rows, a slice after the other; undefined: all of them. */
  readonly load: (ids?: readonly number[]) => AsyncIterable<readonly DirectoryNumber[]>
  /** Reads the ids of the rows of customers. */
  readonly idsOf: (customerIds: readonly number[]) => Promise<readonly number[]>
}

export class NumberDirectory implements OwnedNumbers {
  readonly #reader: NumberReader
  readonly #reloads = new OneAtATime(() => this.#loadAll())
  #table = new NumberTable<DirectoryNumber>()
  #byId = new Map<number, DirectoryNumber>()

  constructor(reader: NumberReader) {
    this.#reader = reader
  }

  find(number: string): DirectoryNumber | undefined {
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

  /** Takes over what is stored now; undefined: all of it. */
  reload(changed?: ChangedNumbers): Promise<void> {
    if (changed === undefined) return this.#reloads.request()
    return this.#reloads.between(async () => {
      const ids = changed.of === 'number' ? changed.ids : await this.#idsOf(changed.ids)
      const rows: DirectoryNumber[] = []
      for await (const slice of this.#reader.load(ids)) rows.push(...slice)
      // From here on in one step: calls see each row as it was, or as it is.
      for (const id of ids) this.#forget(id)
      for (const row of rows) this.#take(row)
    })
  }

  /** Builds a new table, while calls use the present one. */
  async #loadAll(): Promise<void> {
    const table = new NumberTable<DirectoryNumber>()
    const byId = new Map<number, DirectoryNumber>()
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

  #take(row: DirectoryNumber): void {
    this.#byId.set(row.id, row)
    this.#table.add(row)
  }

  #forget(id: number): void {
    const row = this.#byId.get(id)
    if (row === undefined) return
    this.#byId.delete(id)
    this.#table.delete(row)
  }
}
