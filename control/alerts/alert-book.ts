/**
 * Opens and closes alerts, and notes whom that is told. Everything runs in the caller's
 * transaction, and one subject of a rule has one alert that is not over: what was seen twice is
 * told once.
 */
import type { Selectable } from 'kysely'
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

export type AlertRow = Selectable<AlertTable>

export interface AlertEnd {
  readonly by: 'recovery' | 'rule' | 'removal'
  /** A sentence without a full stop, where it is not plain why it is over. */
  readonly why?: string | undefined
}

/** The part of a rule that decides when people are told. */
type NoticeTerms = Pick<RuleInForce, 'groupMs' | 'quietHours' | 'severity'>

/** The terms of a rule that is gone. */
const unheld: NoticeTerms = { groupMs: 0, quietHours: undefined, severity: 'info' }

export class AlertBook {
  readonly #deps: AlertBookDeps

  constructor(deps: AlertBookDeps) {
    this.#deps = deps
  }

  /** It is true now, since `at`. Seen again, it is counted. Resolves with the id of the alert. */
  async open(rule: RuleInForce, facts: AlertFacts, at: number): Promise<number> {
    const known = await this.current(rule.id, facts.subject)
    if (known === undefined) return this.#begin(rule, facts, at)
    const { db } = this.#deps.store
    const seen = db.updateTable('alert').set((eb) => ({
      events: eb('events', '+', 1),
      text: facts.text,
      figures: JSON.stringify(facts.figures),
    }))
    await execute(this.#deps.store, seen.where('id', '=', known.id))
    return known.id
  }

  /** It happened once: nothing will say that it is over. */
  async happen(rule: RuleInForce, facts: AlertFacts, at: number): Promise<void> {
    const alert = await this.#insert({ ...rule, forMs: 0 }, facts, at)
    await this.#tell(rule, alert, rule.channels, { kind: 'opened', at })
    await this.#close(alert.id, { by: 'itself' })
  }

  /** It is over. */
  async close(
    rule: RuleInForce,
    subject: string,
    at: number,
    end: AlertEnd = { by: 'recovery' },
  ): Promise<void> {
    const alert = await this.current(rule.id, subject)
    if (alert !== undefined) await this.end(alert, rule, at, end)
  }

  /**
   * Whoever was told of its beginning is told of its end, which leaves nobody with an incident that
   * nothing closes. What has not lasted long enough was told to nobody, and is forgotten.
   *
   * @param rule undefined: it is gone or switched off, and nothing holds its messages back.
   */
  async end(
    alert: AlertRow,
    rule: NoticeTerms | undefined,
    at: number,
    end: AlertEnd,
  ): Promise<void> {
    const { store } = this.#deps
    if (alert.state === 'waiting')
      return void (await execute(store, store.db.deleteFrom('alert').where('id', '=', alert.id)))
    await this.#close(alert.id, end)
    const told = store.db
      .selectFrom('alert_notice')
      .select('channel_id as id')
      .where('alert_id', '=', alert.id)
      .where('kind', '=', 'opened')
    await this.#tell(rule ?? unheld, alert, await all(store, told), { kind: 'recovered', at })
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
        await this.#close(alert.id, { by: 'rule' })
        continue
      }
      const opened = { state: 'open', opened_at: now() } as const
      await execute(store, store.db.updateTable('alert').set(opened).where('id', '=', alert.id))
      await this.#tell(rule, alert, rule.channels, { kind: 'opened', at: alert.began_at })
    }
    return due.length
  }

  /** Whoever shortens the quiet hours of a rule, or ends them, is told of what they have held. */
  async hasten(rules: readonly RuleInForce[]): Promise<void> {
    const { store, steadyNow } = this.#deps
    const { db } = store
    const held = db.selectFrom('alert_notice').select('rule_id').distinct()
    const waiting = held.where('message_id', 'is', null).where('due_at', '>', steadyNow())
    for (const { rule_id: ruleId } of await all(store, waiting)) {
      const rule = rules.find(({ id }) => id === ruleId)
      const latest = this.#latestDue(rule ?? unheld)
      const sooner = db.updateTable('alert_notice').set({ due_at: latest })
      await execute(
        store,
        sooner
          .where('rule_id', '=', ruleId)
          .where('message_id', 'is', null)
          .where('due_at', '>', latest),
      )
    }
  }

  /** Alerts that are not over, at most `limit` after this id. */
  alertsAfter(id: number, limit: number): Promise<readonly AlertRow[]> {
    const { store } = this.#deps
    const query = store.db
      .selectFrom('alert')
      .selectAll()
      .where('state', '<>', 'closed')
      .where('id', '>', id)
    return all(store, query.orderBy('id').limit(limit))
  }

  /** Those of one rule. */
  alertsOf(ruleId: number): Promise<readonly AlertRow[]> {
    const { store } = this.#deps
    const query = store.db
      .selectFrom('alert')
      .selectAll()
      .where('rule_id', '=', ruleId)
      .where('state', '<>', 'closed')
    return all(store, query)
  }

  /** The one about this subject that is not over. */
  current(ruleId: number, subject: string): Promise<AlertRow | undefined> {
    const { store } = this.#deps
    const query = store.db
      .selectFrom('alert')
      .selectAll()
      .where('rule_id', '=', ruleId)
      .where('subject', '=', subject)
      .where('state', '<>', 'closed')
    return first(store, query)
  }

  async #begin(rule: RuleInForce, facts: AlertFacts, at: number): Promise<number> {
    const alert = await this.#insert(rule, facts, at)
    if (alert.state === 'open') await this.#tell(rule, alert, rule.channels, { kind: 'opened', at })
    return alert.id
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
      ended: null,
    }
    const query = store.db.insertInto('alert').values(row).returning('id')
    return { id: await insert(store, query), ...row }
  }

  async #close(
    id: number,
    {
      by,
      why = null,
    }: { readonly by: AlertRow['closed_by']; readonly why?: string | null | undefined },
  ): Promise<void> {
    const { store, now } = this.#deps
    const closed = { state: 'closed', closed_at: now(), closed_by: by, ended: why } as const
    await execute(store, store.db.updateTable('alert').set(closed).where('id', '=', id))
    await execute(store, store.db.deleteFrom('alert_witness').where('alert_id', '=', id))
  }

  /** Each channel is told once that it opened, and once that it is over. */
  async #tell(
    terms: NoticeTerms,
    alert: AlertRow,
    channels: readonly { readonly id: number }[],
    { kind, at }: { readonly kind: 'opened' | 'recovered'; readonly at: number },
  ): Promise<void> {
    const { store } = this.#deps
    for (const { id: channelId } of channels) {
      const row = {
        alert_id: alert.id,
        channel_id: channelId,
        rule_id: alert.rule_id,
        kind,
        at,
        due_at: await this.#dueAt(terms, alert.rule_id, channelId),
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
  async #dueAt(terms: NoticeTerms, ruleId: number, channelId: number): Promise<number> {
    const { store } = this.#deps
    const gathering = store.db
      .selectFrom('alert_notice')
      .select((row) => row.fn.min('due_at').as('at'))
      .where('channel_id', '=', channelId)
      .where('rule_id', '=', ruleId)
      .where('message_id', 'is', null)
    const known = (await first(store, gathering))?.at
    const latest = this.#latestDue(terms)
    // A group that was held by earlier terms of its rule holds nothing back.
    return typeof known === 'number' ? Math.min(known, latest) : latest
  }

  /** When a group is complete that begins now. */
  #latestDue({ groupMs, quietHours, severity }: NoticeTerms): number {
    const { now, steadyNow } = this.#deps
    const at = now() + groupMs
    const isHeld =
      quietHours !== undefined && (severity !== 'critical' || quietHours.holds_critical)
    return steadyNow() + (isHeld ? afterQuietHours(at, quietHours) : at) - now()
  }
}
