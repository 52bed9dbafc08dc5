/**
 * Knows which instances see what an alert of a node or a carrier tells of. It is open while an
 * instance that lives sees it: two that see a node differently do not close it early, and one that
 * died does not hold it open.
 */
import type { AlertRuleKind } from '../../schema/contracts/alert-kinds.ts'
import type { OutgoingEvent, SetStatus } from '../../schema/contracts/engine.ts'
import { all, execute, first } from '../../schema/sql/query.ts'
import type { Store } from '../../schema/storage/store.ts'
import type { AlertBook, AlertEnd, AlertRow } from './alert-book.ts'
import type { HeardInstance } from './alert-ends.ts'
import { effectOn, factsOf } from './alert-facts.ts'
import type { RuleInForce } from './alert-rule-set.ts'

/** A node or a carrier as this instance sees it: by probes, and decisions of operators. */
export interface Sighting {
  readonly kind: WitnessedKind
  /** It is out of service. */
  readonly isOut: boolean
  /** It has failed by itself: an alert of it opens, should its event have been lost. */
  readonly hasFailed: boolean
  /** As its event tells it. */
  readonly data: OutgoingEvent['data']
}

export interface WitnessesDeps {
  readonly store: Store
  readonly book: AlertBook
  /** The name of this instance. */
  readonly instance: string
  /** All of the installation. */
  readonly instances: () => readonly HeardInstance[]
  readonly sightings: () => readonly Sighting[]
  readonly now: () => number
}

type WitnessedKind = Extract<AlertRuleKind, 'node_down' | 'carrier_down'>

/** The event that opens an alert of each kind. */
const opening = {
  node_down: 'dispatcher.node.down',
  carrier_down: 'carrier.down',
} as const satisfies Record<WitnessedKind, string>

export const isWitnessed = (kind: AlertRuleKind): kind is WitnessedKind => kind in opening

/** Nodes of sets, as probes see them. One that no probe has reached yet is in neither state. */
export const sightingsOfNodes = (sets: readonly SetStatus[]): readonly Sighting[] =>
  sets.flatMap(({ setId, nodes }) =>
    nodes.flatMap(({ destination, state, lastProbe, probes }): Sighting[] => {
      if (state === 'active' && probes.sent === probes.failed) return []
      const { status = 0, reason = '' } = lastProbe ?? {}
      const data = {
        set_id: setId,
        destination,
        to: state,
        reason: status === 0 ? reason : `${status} ${reason}`,
      }
      const isOut = state !== 'active'
      return [{ kind: 'node_down', isOut, hasFailed: state === 'probing', data }]
    }),
  )

/** By the id of a carrier; one that is absent is in neither state. */
export type SeenCarriers = ReadonlyMap<number, 'up' | 'down'>

/** A carrier that was never in service opens no alert: that it is out is no news. */
export const sightingsOfCarriers = (carriers: SeenCarriers): readonly Sighting[] =>
  [...carriers].map(([id, state]) => {
    const data = { carrier_id: id }
    return { kind: 'carrier_down', isOut: state === 'down', hasFailed: false, data }
  })

export class Witnesses {
  readonly #deps: WitnessesDeps
  /** The last look has found that nobody sees these alerts, and has not heard these instances. */
  #unseen: ReadonlySet<number> = new Set()
  #silent: ReadonlySet<string> = new Set()

  constructor(deps: WitnessesDeps) {
    this.#deps = deps
  }

  /** The instance has seen it. */
  async add(alertId: number, kind: AlertRuleKind, instance: string | null): Promise<void> {
    if (instance === null || !isWitnessed(kind)) return
    const { store } = this.#deps
    const query = store.db.insertInto('alert_witness').values({ alert_id: alertId, instance })
    await execute(
      store,
      query.onConflict((conflict) => conflict.doNothing()),
    )
  }

  /** The instance does not see it any more. Resolves with whether another one does. */
  async withdraw(alert: AlertRow, instance: string | null): Promise<boolean> {
    if (instance === null || !isWitnessed(alert.kind)) return false
    const { store } = this.#deps
    const own = store.db
      .deleteFrom('alert_witness')
      .where('alert_id', '=', alert.id)
      .where('instance', '=', instance)
    await execute(store, own)
    const others = store.db.selectFrom('alert_witness').select('instance')
    return (await first(store, others.where('alert_id', '=', alert.id).limit(1))) !== undefined
  }

  /** Stores what this instance sees now for rules about it, in the caller's transaction. */
  async note(rules: readonly RuleInForce[]): Promise<void> {
    // Events that wait tell of it in their order.
    if (await this.#hasEvents()) return
    for (const rule of rules) await this.#noteFor(rule)
  }

  async #hasEvents(): Promise<boolean> {
    const { store } = this.#deps
    const query = store.db
      .selectFrom('alert_event')
      .select('id')
      .where('type', 'in', witnessedTypes)
    return (await first(store, query.limit(1))) !== undefined
  }

  async #noteFor(rule: RuleInForce): Promise<void> {
    const { book, instance, now, sightings } = this.#deps
    const seen = sightings().filter(({ kind }) => kind === rule.kind)
    if (seen.length === 0) return
    const alerts = new Map((await book.alertsOf(rule.id)).map((alert) => [alert.subject, alert]))
    const own = await this.#seenBy(instance, rule.id)
    for (const { data, isOut, hasFailed } of seen) {
      const facts = factsOf(opening[rule.kind as WitnessedKind], data)
      const alert = alerts.get(facts.subject)
      if (alert === undefined) {
        if (hasFailed && (await this.#concerns(rule, facts)))
          await this.add(await book.open(rule, facts, now()), rule.kind, instance)
      } else if (isOut) {
        if (!own.has(alert.id)) await this.add(alert.id, rule.kind, instance)
      } else if (own.has(alert.id) && !(await this.withdraw(alert, instance)))
        await book.end(alert, rule, now(), { by: 'recovery' })
    }
  }

  async #seenBy(instance: string, ruleId: number): Promise<ReadonlySet<number>> {
    const { store } = this.#deps
    const query = store.db
      .selectFrom('alert_witness')
      .innerJoin('alert', 'alert.id', 'alert_id')
      .select('alert_id')
      .where('instance', '=', instance)
      .where('rule_id', '=', ruleId)
    return new Set((await all(store, query)).map(({ alert_id: id }) => id))
  }

  async #concerns(rule: RuleInForce, facts: ReturnType<typeof factsOf>): Promise<boolean> {
    if (rule.tenantId === null) return effectOn(rule, opening.node_down, facts, null) === 'opens'
    const { store } = this.#deps
    const query = store.db.selectFrom('dispatcher_set').select('tenant_id')
    const set = await first(store, query.where('set_id', '=', facts.setId ?? -1))
    return effectOn(rule, opening.node_down, facts, set?.tenant_id ?? null) === 'opens'
  }

  /**
   * Forgets what instances saw that are gone, and resolves with the alerts that nobody sees any
   * more. Both count once two looks, a minute apart, have found the same: an instance may be on its
   * way back, or new.
   */
  async unseen(): Promise<ReadonlyMap<AlertRow, AlertEnd>> {
    await this.#forgetSilent()
    const { store } = this.#deps
    const query = store.db
      .selectFrom('alert')
      .selectAll()
      .where('state', '<>', 'closed')
      .where('kind', 'in', Object.keys(opening) as WitnessedKind[])
      .where((row) =>
        row.not(
          row.exists(
            row
              .selectFrom('alert_witness')
              .select('instance')
              .whereRef('alert_witness.alert_id', '=', 'alert.id'),
          ),
        ),
      )
    const alerts = await all(store, query.orderBy('id').limit(MAX_UNSEEN))
    const before = this.#unseen
    this.#unseen = new Set(alerts.map(({ id }) => id))
    const why = 'No instance sees it so any more'
    return new Map(
      alerts.filter(({ id }) => before.has(id)).map((alert) => [alert, { by: 'recovery', why }]),
    )
  }

  async #forgetSilent(): Promise<void> {
    const { store, instances } = this.#deps
    const rows = await all(
      store,
      store.db.selectFrom('alert_witness').select('instance').distinct(),
    )
    const heard = new Set(
      instances().flatMap(({ name, state }) =>
        state === 'stopped' || state === 'lost' ? [] : [name],
      ),
    )
    const silent = rows.map(({ instance }) => instance).filter((name) => !heard.has(name))
    const gone = silent.filter((name) => this.#silent.has(name))
    this.#silent = new Set(silent)
    if (gone.length === 0) return
    await execute(store, store.db.deleteFrom('alert_witness').where('instance', 'in', gone))
  }
}

const witnessedTypes = ['dispatcher.node.down', 'dispatcher.node.up', 'carrier.down', 'carrier.up']

/** Alerts that one look finds. */
const MAX_UNSEEN = 500
