/**
 * Finds out what events mean: it opens and closes alerts, and puts what channels are to be told
 * together to messages. One instance does so at a time, and the transaction that does it removes
 * the events: each counts once, whatever dies when.
 */
import type { Selectable } from 'kysely'
import {
  all,
  execute,
  first,
  insert,
  lockedTransaction,
  onOneInstance,
} from '../../schema/sql/query.ts'
import type { Store } from '../../schema/storage/store.ts'
import type { AlertEventTable } from '../../schema/tables/alerts.ts'
import type { AlertBook } from './alert-book.ts'
import { effectOn, factsOf } from './alert-facts.ts'
import type { AlertItem, AlertMessage } from './alert-message.ts'
import {
  type AlertRuleSet,
  type ChannelInForce,
  loadRuleSet,
  type RuleInForce,
} from './alert-rule-set.ts'
import type { Witnesses } from './witnesses.ts'

export interface GathererDeps {
  readonly store: Store
  readonly book: AlertBook
  readonly witnesses: Witnesses
  readonly now: () => number
  readonly steadyNow: () => number
  /** Draws the id of a message. */
  readonly newKey: () => string
}

/** Events, alerts and messages of one transaction: calls wait some milliseconds at most. */
const EVENTS_AT_ONCE = 50
const MESSAGES_AT_ONCE = 20
/** Items of one message; those beyond are in the next one. */
const MAX_ITEMS = 200

export class Gatherer {
  readonly #deps: GathererDeps

  constructor(deps: GathererDeps) {
    this.#deps = deps
  }

  /** Resolves with whether there is more to do now. */
  async step(known: AlertRuleSet): Promise<boolean> {
    const { store, book } = this.#deps
    if (!(await this.#hasWork())) return false
    const work = async (): Promise<boolean> => {
      // Another instance may have written events for a rule that is not known here yet.
      const inForce = store.statements.isShared ? await loadRuleSet(store) : known
      const rules = new Map(inForce.rules.map((rule) => [rule.id, rule]))
      const events = await this.#takeEvents(inForce.rules)
      const opened = await book.openDue(rules, EVENTS_AT_ONCE)
      const messages = await this.#compose(inForce)
      return events === EVENTS_AT_ONCE || opened === EVENTS_AT_ONCE || messages
    }
    const done = await onOneInstance(store, 'alerts', work, lockedTransaction)
    return done.kind === 'elsewhere' || done.result
  }

  /** Looks before it locks: most of the time there is nothing. */
  async #hasWork(): Promise<boolean> {
    const { store, steadyNow } = this.#deps
    const { db } = store
    const looks = [
      db.selectFrom('alert_event').select('id').limit(1),
      db
        .selectFrom('alert')
        .select('id')
        .where('state', '=', 'waiting')
        .where('due_at', '<=', steadyNow())
        .limit(1),
      db
        .selectFrom('alert_notice')
        .select('id')
        .where('message_id', 'is', null)
        .where('due_at', '<=', steadyNow())
        .limit(1),
    ]
    for (const look of looks) if ((await first(store, look)) !== undefined) return true
    return false
  }

  async #takeEvents(rules: readonly RuleInForce[]): Promise<number> {
    const { store } = this.#deps
    const { db } = store
    const query = db.selectFrom('alert_event').selectAll().orderBy('id').limit(EVENTS_AT_ONCE)
    const events = await all(store, query)
    for (const event of events) await this.#apply(rules, event)
    const ids = events.map(({ id }) => id)
    if (ids.length > 0) await execute(store, db.deleteFrom('alert_event').where('id', 'in', ids))
    return events.length
  }

  async #apply(
    rules: readonly RuleInForce[],
    { type, tenant_id: given, data, at, instance }: Selectable<AlertEventTable>,
  ): Promise<void> {
    // Only the outbox writes it.
    const facts = factsOf(type, JSON.parse(data) as Record<string, unknown>)
    const tenantId = given ?? (await this.#tenantOfSet(facts.setId))
    const { book, witnesses } = this.#deps
    for (const rule of rules) {
      const effect = effectOn(rule, type, facts, tenantId)
      if (effect === 'opens')
        await witnesses.add(await book.open(rule, facts, at), rule.kind, instance)
      else if (effect === 'happens') await book.happen(rule, facts, at)
      else if (effect === 'closes') await this.#close(rule, facts.subject, at, instance)
    }
  }

  /** Another instance may still see it. */
  async #close(
    rule: RuleInForce,
    subject: string,
    at: number,
    instance: string | null,
  ): Promise<void> {
    const { book, witnesses } = this.#deps
    const alert = await book.current(rule.id, subject)
    if (alert === undefined || (await witnesses.withdraw(alert, instance))) return
    await book.end(alert, rule, at, { by: 'recovery' })
  }

  async #tenantOfSet(setId: number | null): Promise<number | null> {
    if (setId === null) return null
    const { store } = this.#deps
    const query = store.db
      .selectFrom('dispatcher_set')
      .select('tenant_id')
      .where('set_id', '=', setId)
    return (await first(store, query))?.tenant_id ?? null
  }

  /** Groups that are complete become messages. Resolves with whether there are more. */
  async #compose({ channels, rules }: AlertRuleSet): Promise<boolean> {
    const { store, steadyNow } = this.#deps
    const query = store.db
      .selectFrom('alert_notice')
      .select(['channel_id', 'rule_id'])
      .where('message_id', 'is', null)
      .groupBy(['channel_id', 'rule_id'])
      .having((row) => row.fn.min('due_at'), '<=', steadyNow())
      .limit(MESSAGES_AT_ONCE)
    let count = 0
    let isMore = false
    for (const { channel_id: channelId, rule_id: ruleId } of await all(store, query)) {
      const channel = channels.get(channelId)
      // The channel is new here: its rows are read soon.
      if (channel === undefined) continue
      const rule = rules.find(({ id }) => id === ruleId)
      const most = channel.kind === 'pagerduty' ? 1 : MAX_ITEMS
      let taken = most
      while (taken === most && count < MESSAGES_AT_ONCE) {
        taken = await this.#composeOne(channel, ruleId, rule?.name, most)
        if (taken > 0) count += 1
      }
      isMore ||= taken === most
    }
    return isMore || count === MESSAGES_AT_ONCE
  }

  async #composeOne(
    channel: ChannelInForce,
    ruleId: number,
    ruleName: string | undefined,
    most: number,
  ): Promise<number> {
    const { store, now, steadyNow, newKey } = this.#deps
    const notices = await this.#gathered(channel.id, ruleId, most)
    const [oldest] = notices
    if (oldest === undefined) return 0
    const items = notices.map(itemOf)
    const severities = items.map(({ severity }) => severity)
    const message: AlertMessage = {
      rule: ruleName ?? oldest.rule,
      channel: channel.name,
      severity: severities.includes('critical') ? 'critical' : (severities[0] ?? 'warning'),
      items,
    }
    const row = {
      key: newKey(),
      channel_id: channel.id,
      rule_id: ruleId,
      after_id: most === 1 ? await this.#earlier(channel.id, oldest.alert_id) : null,
      body: JSON.stringify(message),
      next_attempt_at: steadyNow(),
      last_attempt_at: null,
      last_error: null,
      created_at: now(),
      claimed_by: null,
      claimed_until: null,
    }
    const id = await insert(store, store.db.insertInto('alert_message').values(row).returning('id'))
    const ids = notices.map((notice) => notice.id)
    const complete = store.db.updateTable('alert_notice').set({ message_id: id })
    await execute(store, complete.where('id', 'in', ids))
    return notices.length
  }

  #gathered(channelId: number, ruleId: number, most: number) {
    const { store } = this.#deps
    return all(
      store,
      store.db
        .selectFrom('alert_notice')
        .innerJoin('alert', 'alert.id', 'alert_notice.alert_id')
        .selectAll('alert_notice')
        .select(['key', 'rule', 'text', 'figures', 'path', 'severity', 'began_at', 'ended'])
        .where('channel_id', '=', channelId)
        .where('alert_notice.rule_id', '=', ruleId)
        .where('message_id', 'is', null)
        .orderBy('alert_notice.id')
        .limit(most),
    )
  }

  /** The message that told of the same alert before. */
  async #earlier(channelId: number, alertId: number): Promise<number | null> {
    const { store } = this.#deps
    const query = store.db
      .selectFrom('alert_notice')
      .select((row) => row.fn.max('message_id').as('id'))
      .where('channel_id', '=', channelId)
      .where('alert_id', '=', alertId)
    return (await first(store, query))?.id ?? null
  }
}

interface Notice {
  readonly key: string
  readonly kind: AlertItem['kind']
  readonly text: string
  /** JSON object. */
  readonly figures: string
  readonly path: string
  readonly severity: AlertItem['severity']
  readonly began_at: number
  readonly at: number
  readonly ended: string | null
}

const itemOf = ({ figures, began_at: since, ...notice }: Notice): AlertItem => ({
  key: notice.key,
  kind: notice.kind,
  text: notice.text,
  // Only the book of alerts writes it.
  figures: JSON.parse(figures) as AlertItem['figures'],
  path: notice.path,
  severity: notice.severity,
  since,
  at: notice.at,
  ...(notice.kind === 'recovered' && notice.ended !== null && { ended: notice.ended }),
})
