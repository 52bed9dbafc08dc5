/**
 * Opens and closes alerts, and notes whom that is told. Everything runs in the caller's
 * transaction, and one subject of a rule has one alert that is not over: what was seen twice is
 * told once.
 */
import { type Selectable, sql } from 'kysely'
import { afterQuietHours } from '../../schema/rules/quiet-hours.ts'
import { all, execute, first, insert } from '../../schema/sql/query.ts'
import type { Store } from '../../schema/storage/store.ts'
import type { AlertTable } from '../../schema/tables/alerts.ts'
import type { AlertFacts } from './alert-facts.ts'
import type { RuleInForce } from './alert-rule-set.ts'

export interface AlertBookDeps {
  readonly store: Store
  /** Milliseconds UTC of the system clock. */
  readonly now: () => number
  readonly steadyNow: () => number
  /** Draws the key of a new alert. */
  readonly newKey: () => string
}

/** Alerts that one transaction ends. */
const GONE_AT_ONCE = 100

export type AlertRow = Selectable<AlertTable>

export class AlertBook {
  readonly #deps: AlertBookDeps

  constructor(deps: AlertBookDeps) {
    this.#deps = deps
  }

  /** It is true now, since `at`. Seen again, it is counted. */
  async open(rule: RuleInForce, facts: AlertFacts, at: number): Promise<void> {
    const known = await this.#current(rule.id, facts.subject)
    if (known === undefined) return this.#begin(rule, facts, at)
    const { db } = this.#deps.store
    const seen = db.updateTable('alert').set((eb) => ({
      events: eb('events', '+', 1),
      text: facts.text,
      figures: JSON.stringify(facts.figures),
    }))
    await execute(this.#deps.store, seen.where('id', '=', known.id))
  }

  /** It happened once: nothing will say that it is over. */
  async happen(rule: RuleInForce, facts: AlertFacts, at: number): Promise<void> {
    const alert = await this.#insert({ ...rule, forMs: 0 }, facts, at)
    await this.#notify(rule, alert, 'opened', at)
    await this.#close(alert.id, 'itself')
  }

  /** It is over. What has not lasted long enough was told to nobody, and is forgotten. */
  async close(rule: RuleInForce, subject: string, at: number): Promise<void> {
    const alert = await this.#current(rule.id, subject)
    if (alert === undefined) return
    const { store } = this.#deps
    if (alert.state === 'waiting')
      return void (await execute(store, store.db.deleteFrom('alert').where('id', '=', alert.id)))
    await this.#close(alert.id, 'recovery')
    await this.#notify(rule, alert, 'recovered', at)
  }

  /** Opens what has lasted long enough, at most `limit`. */
  async openDue(rules: ReadonlyMap<number, RuleInForce>, limit: number): Promise<number> {
    const { store, now, steadyNow } = this.#deps
    const query = store.db
      .selectFrom('alert')
      .selectAll()
      .where('state', '=', 'waiting')
      .where('due_at', '<=', steadyNow())
      .orderBy('due_at')
      .limit(limit)
    const due = await all(store, query)
    for (const alert of due) {
      const rule = rules.get(alert.rule_id)
      if (rule === undefined) {
        await this.#close(alert.id, 'rule')
        continue
      }
      const opened = { state: 'open', opened_at: now() } as const
      await execute(store, store.db.updateTable('alert').set(opened).where('id', '=', alert.id))
      await this.#notify(rule, alert, 'opened', alert.began_at)
    }
    return due.length
  }

  /** Closes, untold, the alerts of rules that are gone or switched off. */
  async closeWithoutRule(): Promise<void> {
    const { store, now } = this.#deps
    const enabled = store.db.selectFrom('alert_rule').select('id').where('is_enabled', '=', 1)
    const query = store.db
      .updateTable('alert')
      .set({ state: 'closed', closed_at: now(), closed_by: 'rule' })
      .where('state', '<>', 'closed')
      .where('rule_id', 'not in', enabled)
    await execute(store, query)
  }

  /** Ends the alerts of carriers that were deleted: nothing else would say that they are over. */
  async closeGone(rules: readonly RuleInForce[]): Promise<void> {
    const { store, now } = this.#deps
    const looking = rules.filter(({ kind }) => kind === 'carrier_down')
    if (looking.length === 0) return
    const query = store.db
      .selectFrom('alert')
      .select(['rule_id', 'subject'])
      .where('kind', '=', 'carrier_down')
      .where('state', '<>', 'closed')
      .where((row) =>
        row.not(
          row.exists(
            row
              .selectFrom('carrier')
              .select('id')
              .where('alert.subject', '=', sql<string>`'carrier ' || CAST(id AS text)`),
          ),
        ),
      )
      .limit(GONE_AT_ONCE)
    for (const { rule_id: id, subject } of await all(store, query)) {
      const rule = looking.find((each) => each.id === id)
      if (rule !== undefined) await this.close(rule, subject, now())
    }
  }

  /** The subjects of a rule of which an alert waits or is open. */
  async subjectsOf(ruleId: number): Promise<readonly string[]> {
    const { store } = this.#deps
    const query = store.db
      .selectFrom('alert')
      .select('subject')
      .where('rule_id', '=', ruleId)
      .where('state', '<>', 'closed')
    return (await all(store, query)).map(({ subject }) => subject)
  }

  #current(ruleId: number, subject: string): Promise<AlertRow | undefined> {
    const { store } = this.#deps
    const query = store.db
      .selectFrom('alert')
      .selectAll()
      .where('rule_id', '=', ruleId)
      .where('subject', '=', subject)
      .where('state', '<>', 'closed')
    return first(store, query)
  }

  async #begin(rule: RuleInForce, facts: AlertFacts, at: number): Promise<void> {
    const alert = await this.#insert(rule, facts, at)
    if (alert.state === 'open') await this.#notify(rule, alert, 'opened', at)
  }

  async #insert(
    { id, name, tenantId, kind, severity, forMs }: RuleInForce,
    { subject, text, figures, path }: AlertFacts,
    at: number,
  ): Promise<AlertRow> {
    const { store, now, steadyNow, newKey } = this.#deps
    const isOpen = forMs === 0
    const row: Omit<AlertRow, 'id'> = {
      key: newKey(),
      rule_id: id,
      rule: name,
      tenant_id: tenantId,
      kind,
      subject,
      severity,
      state: isOpen ? 'open' : 'waiting',
      text,
      figures: JSON.stringify(figures),
      path,
      events: 1,
      began_at: at,
      due_at: steadyNow() + Math.max(0, forMs - Math.max(0, now() - at)),
      opened_at: isOpen ? now() : null,
      closed_at: null,
      closed_by: null,
    }
    const query = store.db.insertInto('alert').values(row).returning('id')
    return { id: await insert(store, query), ...row }
  }

  async #close(id: number, by: 'recovery' | 'rule' | 'itself'): Promise<void> {
    const { store, now } = this.#deps
    const closed = { state: 'closed', closed_at: now(), closed_by: by } as const
    await execute(store, store.db.updateTable('alert').set(closed).where('id', '=', id))
  }

  /** Each channel of the rule is told once that it opened, and once that it is over. */
  async #notify(
    rule: RuleInForce,
    alert: AlertRow,
    kind: 'opened' | 'recovered',
    at: number,
  ): Promise<void> {
    const { store } = this.#deps
    for (const { id: channelId } of rule.channels) {
      const row = {
        alert_id: alert.id,
        channel_id: channelId,
        rule_id: rule.id,
        kind,
        at,
        due_at: await this.#dueAt(rule, channelId),
        message_id: null,
      }
      const query = store.db.insertInto('alert_notice').values(row)
      await execute(
        store,
        query.onConflict((conflict) =>
          conflict.columns(['alert_id', 'channel_id', 'kind']).doNothing(),
        ),
      )
    }
  }

  /** With the group that is gathering, else when a new one is complete, after quiet hours. */
  async #dueAt(rule: RuleInForce, channelId: number): Promise<number> {
    const { store, now, steadyNow } = this.#deps
    const gathering = store.db
      .selectFrom('alert_notice')
      .select((row) => row.fn.min('due_at').as('at'))
      .where('channel_id', '=', channelId)
      .where('rule_id', '=', rule.id)
      .where('message_id', 'is', null)
    const known = (await first(store, gathering))?.at
    if (typeof known === 'number') return known
    const at = now() + rule.groupMs
    const { quietHours, severity } = rule
    const isHeld =
      quietHours !== undefined && (severity !== 'critical' || quietHours.holds_critical)
    return steadyNow() + (isHeld ? afterQuietHours(at, quietHours) : at) - now()
  }
}
