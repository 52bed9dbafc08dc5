/**
 * The rules about callers in memory, of the few rows that have any. A call without rules costs one
 * look at an empty table.
 */
import type { ChangedRows } from '../../../schema/contracts/changed-rows.ts'
import { OneAtATime } from '../../../schema/one-at-a-time.ts'
import type { CallerIdentityRules } from './decide.ts'

export type PolicySource = 'extension' | 'customer' | 'dispatcher_set' | 'carrier'

export type ChangedPolicies = ChangedRows<PolicySource>

export interface StoredPolicy {
  /** Id of the row; of a dispatcher set, the number of the set. */
  readonly id: number
  readonly rules: CallerIdentityRules | undefined
  /** The caller number of an extension, the default number of a customer. */
  readonly number: string | undefined
}

/** Reads the rows of a source that have rules or a number; undefined: all of them. */
export type ReadPolicies = (
  of: PolicySource,
  ids?: readonly number[],
) => Promise<readonly StoredPolicy[]>

type Policies = Map<number, StoredPolicy>

const sources: readonly PolicySource[] = ['extension', 'customer', 'dispatcher_set', 'carrier']

export class CallerPolicies {
  readonly #read: ReadPolicies
  readonly #reloads = new OneAtATime(() => this.#readAll())
  readonly #policies = new Map<PolicySource, Policies>()

  /** Empty until `reload`. */
  constructor(read: ReadPolicies) {
    this.#read = read
  }

  get isEmpty(): boolean {
    for (const policies of this.#policies.values()) if (policies.size > 0) return false
    return true
  }

  find(of: PolicySource, id: number | null | undefined): StoredPolicy | undefined {
    return id == null ? undefined : this.#policies.get(of)?.get(id)
  }

  /** Takes over what is stored now; undefined: of all sources. */
  reload(changed?: ChangedPolicies): Promise<void> {
    if (changed === undefined) return this.#reloads.request()
    const { of, ids } = changed
    // Sets are few, and are known by a number of their own.
    if (of === 'dispatcher_set') return this.#reloads.between(() => this.#readSource(of))
    return this.#reloads.between(async () => {
      const found = await this.#read(of, ids)
      const policies: Policies = this.#policies.get(of) ?? new Map()
      for (const id of ids) policies.delete(id)
      for (const policy of found) policies.set(policy.id, policy)
      this.#policies.set(of, policies)
    })
  }

  async #readAll(): Promise<void> {
    for (const of of sources) await this.#readSource(of)
  }

  async #readSource(of: PolicySource): Promise<void> {
    const found = await this.#read(of)
    this.#policies.set(of, new Map(found.map((policy) => [policy.id, policy])))
  }
}
