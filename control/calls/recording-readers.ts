/** How many recordings are read at the same time: a slow reader holds a file open. */
const maxReaders = 64

/** Limit of one tenant, so that it does not exclude all others. */
const maxOfTenant = 16

export class RecordingReaders {
  readonly #ofTenants = new Map<number | null, number>()
  #total = 0

  /**
   * @param tenantId of the reader; null: it belongs to no tenant, and only the whole number counts
   * @returns what the reader calls once, at its end; undefined: there are too many
   */
  enter(tenantId: number | null): (() => void) | undefined {
    const ofTenant = this.#ofTenants.get(tenantId) ?? 0
    if (this.#total >= maxReaders || (tenantId !== null && ofTenant >= maxOfTenant))
      return undefined
    this.#total += 1
    this.#ofTenants.set(tenantId, ofTenant + 1)
    return () => this.#leave(tenantId)
  }

  #leave(tenantId: number | null): void {
    this.#total -= 1
    const left = (this.#ofTenants.get(tenantId) ?? 0) - 1
    if (left > 0) this.#ofTenants.set(tenantId, left)
    else this.#ofTenants.delete(tenantId)
  }
}
