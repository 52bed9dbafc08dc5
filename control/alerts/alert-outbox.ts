/**
 * The outbox of alerts. Events are written in the transaction that makes them true, one row each,
 * and only those that a rule looks at: what follows from them is found out later, apart from calls.
 */
import type { EventType, OutgoingEvent } from '../../schema/contracts/engine.ts'
import { typesOfKinds } from '../../schema/contracts/alert-kinds.ts'
import type { Store } from '../../schema/storage/store.ts'
import type { SideOutbox } from '../webhooks/outbox.ts'
import type { RuleInForce } from './alert-rule-set.ts'

export interface AlertOutboxDeps {
  readonly store: Store
  /** The name of this instance. */
  readonly instance: string
  /** Milliseconds UTC. */
  readonly now: () => number
  /** Called after the commit of what was written. */
  readonly onWrite: () => void
}

/** The owner of rules that see what happens to all tenants. */
const ofAll = 'all'

export class AlertOutbox implements SideOutbox {
  readonly #deps: AlertOutboxDeps
  readonly #insert: ReturnType<typeof prepareInsert>
  /** By type of event: the tenants whose rules look at it. */
  #owners = new Map<string, ReadonlySet<number | typeof ofAll>>()

  constructor(deps: AlertOutboxDeps) {
    this.#deps = deps
    this.#insert = prepareInsert(deps.store)
  }

  setRules(rules: readonly RuleInForce[]): void {
    const owners = new Map<string, Set<number | typeof ofAll>>()
    for (const { kind, tenantId } of rules)
      for (const type of typesOfKinds([kind])) {
        const known = owners.get(type) ?? new Set()
        owners.set(type, known.add(tenantId ?? ofAll))
      }
    this.#owners = owners
  }

  wants(type: EventType, tenantId: number | null): boolean {
    const owners = this.#owners.get(type)
    if (owners === undefined) return false
    // Nodes belong to the tenant of their set, which their events do not say.
    return owners.has(ofAll) || type.startsWith('dispatcher.') || owners.has(tenantId ?? ofAll)
  }

  selects(type: EventType): boolean {
    return this.#owners.has(type)
  }

  async writeAll(events: readonly OutgoingEvent[]): Promise<void> {
    const wanted = events.filter(({ type, tenantId }) => this.wants(type, tenantId))
    if (wanted.length === 0) return
    const at = this.#deps.now()
    await this.#insert(
      wanted.map(({ type, tenantId, data }) => ({
        type,
        tenant_id: tenantId,
        data: JSON.stringify(data),
        at,
        instance: this.#deps.instance,
      })),
    )
    this.#deps.store.statements.afterCommit(this.#deps.onWrite)
  }
}

const prepareInsert = ({ statements }: Store) =>
  statements.prepareRows({
    table: 'alert_event',
    columns: ['type', 'tenant_id', 'data', 'at', 'instance'],
    sql: `INSERT INTO alert_event (type, tenant_id, data, at, instance)
      SELECT type, tenant_id, data, at, instance FROM given`,
  })
