/** Who pays for calls of which number: the calling numbers of customers, and the extensions of tenants. */
import { Buckets } from '../../../schema/buckets.ts'
import { numberOrText } from '../../../schema/rules/numbers.ts'

export interface OwnedNumber {
  /** As it is stored: rows of earlier versions may not have the normal form. */
  readonly number: string
  readonly customer_id: number
}

/** Calling numbers in their normal form, and user names. */
export class OwnedNumbers {
  readonly #byNumber = new Buckets<string, OwnedNumber>()
  readonly #ofCustomer = new Map<number, readonly OwnedNumber[]>()

  ownerOf(number: string): number | undefined {
    const owners = this.#byNumber.of(number)
    // The normal form counts before another spelling, and of two owners the one that was stored last.
    return (owners.findLast((each) => each.number === number) ?? owners[0])?.customer_id
  }

  /** All numbers of a customer, instead of those before. */
  set(customerId: number, numbers: readonly OwnedNumber[]): void {
    for (const before of this.#ofCustomer.get(customerId) ?? [])
      this.#byNumber.delete(numberOrText(before.number), before)
    if (numbers.length === 0) this.#ofCustomer.delete(customerId)
    else this.#ofCustomer.set(customerId, numbers)
    for (const each of numbers) this.#byNumber.add(numberOrText(each.number), each)
  }
}

export interface OwnedExtension {
  readonly id: number
  readonly extension: string
  readonly tenant_id: number
  readonly customer_id: number | null
}

/** Extensions by number, in each tenant and in all. */
export class OwnedExtensions {
  readonly #byId = new Map<number, OwnedExtension>()
  readonly #byNumber = new Buckets<string, OwnedExtension>()

  /**
   * Extensions of several domains, or (null) of several tenants, may share a number: if they have different customers,
   * or one has none, the number has none.
   */
  ownerOf(extension: string, tenantId: number | null): number | undefined {
    const sharers = this.#byNumber.of(keyOf(extension, tenantId))
    const owner = sharers[0]?.customer_id ?? undefined
    return sharers.every(({ customer_id }) => customer_id === owner) ? owner : undefined
  }

  ids(): IterableIterator<number> {
    return this.#byId.keys()
  }

  set(row: OwnedExtension): void {
    this.delete(row.id)
    this.#byId.set(row.id, row)
    this.#byNumber.add(keyOf(row.extension, null), row)
    this.#byNumber.add(keyOf(row.extension, row.tenant_id), row)
  }

  delete(id: number): void {
    const row = this.#byId.get(id)
    if (row === undefined) return
    this.#byId.delete(id)
    this.#byNumber.delete(keyOf(row.extension, null), row)
    this.#byNumber.delete(keyOf(row.extension, row.tenant_id), row)
  }
}

const keyOf = (extension: string, tenantId: number | null): string =>
  tenantId === null ? extension : `${extension} ${tenantId}`
