/**
 * Tells webhooks of carriers that go out of service and come back, and of registrations at carriers
 * that fail. An instance tells what it has seen change itself; the row of a carrier says what was
 * told last, so that each change is told once, by whichever instance sees it first, and after a
 * crash, too.
 */
import { timeToText } from '../../../schema/columns.ts'
import type { EnginePort, OutgoingEvent } from '../../../schema/contracts/engine.ts'
import type { Log } from '../../../schema/contracts/log.ts'
import { all, execute, first, transaction } from '../../../schema/sql/query.ts'
import { isUnstored } from '../../../schema/storage/storage.ts'
import type { Store } from '../../../schema/storage/store.ts'
import type { CarrierServiceTable } from '../../../schema/tables/findings.ts'
import { serviceOfCalls, serviceOfRegistration, type CarrierService } from './carrier-service.ts'

export interface CarrierWatchDeps {
  readonly store: Store
  readonly engine: Pick<EnginePort, 'trunks' | 'quality'>
  /** Takes events in the open transaction. */
  readonly webhooks: { readonly write: (event: OutgoingEvent) => Promise<void> }
  /** Milliseconds UTC. */
  readonly now: () => number
  readonly log: Log
}

export const CARRIERS_TICK_MS = 5_000
/** Carriers beyond are not watched. */
const MAX_CARRIERS = 5_000

interface WatchedCarrier {
  readonly id: number
  readonly name: string
  readonly tenant_id: number | null
  readonly is_active: number
}

type ServiceName = CarrierServiceTable['service']

export class CarrierWatch {
  readonly #deps: CarrierWatchDeps
  /** States that this instance has seen, by service and carrier. */
  #seen = new Map<string, 'up' | 'down'>()
  #isBusy = false

  constructor(deps: CarrierWatchDeps) {
    this.#deps = deps
  }

  /** Whether each carrier took calls when this instance looked last, by its id. */
  seen(): ReadonlyMap<number, 'up' | 'down'> {
    const found = new Map<number, 'up' | 'down'>()
    for (const [key, state] of this.#seen) {
      const [service, id] = key.split(' ')
      if (service === 'calls') found.set(Number(id), state)
    }
    return found
  }

  /** Never rejects. */
  async tick(): Promise<void> {
    if (this.#isBusy) return
    this.#isBusy = true
    try {
      await this.#look()
    } catch (error) {
      // Then the next time.
      if (!isUnstored(error))
        this.#deps.log('error', 'carriers cannot be watched', { error: String(error) })
    } finally {
      this.#isBusy = false
    }
  }

  async #look(): Promise<void> {
    const { engine } = this.#deps
    const carriers = await this.#carriers()
    const seen = new Map<string, 'up' | 'down'>()
    const lows = engine.quality.all()
    for (const carrier of carriers) {
      const { id, gateways } = carrier
      const services: readonly [ServiceName, CarrierService][] = [
        [
          'calls',
          serviceOfCalls(
            carrier.is_active === 1,
            gateways.map((gateway) => engine.trunks.gatewayStatus(gateway)),
            lows.filter(({ carrierId }) => carrierId === id),
          ),
        ],
        ['registration', serviceOfRegistration(engine.trunks.registrationOf(id))],
      ]
      for (const [name, service] of services) {
        const key = `${name} ${id}`
        const before = this.#seen.get(key)
        if (service.state !== 'unknown' && service.state !== before)
          await this.#tell(carrier, name, service, before === undefined)
        const after = service.state === 'unknown' ? before : service.state
        if (after !== undefined) seen.set(key, after)
      }
    }
    this.#seen = seen
  }

  async #carriers() {
    const { store } = this.#deps
    const query = store.db
      .selectFrom('carrier')
      .select(['id', 'name', 'tenant_id', 'is_active'])
      .orderBy('id')
      .limit(MAX_CARRIERS)
    const gateways = store.db.selectFrom('carrier_gateway').select(['id', 'carrier_id'])
    const byCarrier = new Map<number, number[]>()
    for (const { id, carrier_id } of await all(store, gateways))
      byCarrier.set(carrier_id, [...(byCarrier.get(carrier_id) ?? []), id])
    return (await all(store, query)).map((carrier) => ({
      ...carrier,
      gateways: byCarrier.get(carrier.id) ?? [],
    }))
  }

  /** @param isFirst this instance has not seen the carrier before. */
  #tell(
    carrier: WatchedCarrier,
    service: ServiceName,
    { state, cause, reason }: CarrierService & { readonly state: 'up' | 'down' },
    isFirst: boolean,
  ): Promise<void> {
    const { store, now, webhooks } = this.#deps
    return transaction(store, async () => {
      const at = now()
      const before = await this.#claim(carrier.id, service, { state, at })
      if (before === 'told') return
      // Nobody was told that it worked: that it does is no news, nor that it never did by hand.
      if (before === 'new' && (state === 'up' || (isFirst && cause === 'by_hand'))) return
      const { id: carrier_id, name, tenant_id: tenantId } = carrier
      const named = { carrier_id, carrier: name }
      if (service === 'calls') {
        const type = state === 'up' ? 'carrier.up' : 'carrier.down'
        const downSeconds =
          before === 'new' || state === 'down'
            ? {}
            : { down_seconds: Math.max(0, Math.round((at - before.since) / 1_000)) }
        const data = { ...named, cause, reason, at: timeToText(at), ...downSeconds }
        await webhooks.write({ type, tenantId, data })
      } else if (state === 'down') {
        const data = { of: 'carrier', count: 1, ...named, reason, at: timeToText(at) }
        await webhooks.write({ type: 'registration.lost', tenantId, data })
      }
    })
  }

  /**
   * Notes the state in the open transaction. `told`: another instance, or an earlier run, has told
   * of it; `new`: nothing was noted before; otherwise since when it had the other state.
   */
  async #claim(
    carrierId: number,
    service: ServiceName,
    { state, at }: { readonly state: 'up' | 'down'; readonly at: number },
  ): Promise<'told' | 'new' | { readonly since: number }> {
    const { store } = this.#deps
    const { db } = store
    const row = { carrier_id: carrierId, service, state, since: at }
    const added = db
      .insertInto('carrier_service')
      .values(row)
      .onConflict((conflict) => conflict.doNothing())
    if ((await execute(store, added)) > 0) return 'new'
    const known = db
      .selectFrom('carrier_service')
      .select('since')
      .where('carrier_id', '=', carrierId)
      .where('service', '=', service)
      .where('state', '!=', state)
    const before = await first(store, known)
    const changed = db
      .updateTable('carrier_service')
      .set({ state, since: at })
      .where('carrier_id', '=', carrierId)
      .where('service', '=', service)
      .where('state', '!=', state)
    return before !== undefined && (await execute(store, changed)) > 0 ? before : 'told'
  }
}
