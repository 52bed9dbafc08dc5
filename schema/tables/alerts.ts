/** Alerts: channels, rules, what is being alerted of, and the messages about it. */
import type { Defaulted, Flag, Id } from '../columns.ts'
import type { AlertRuleKind, AlertSeverity, ChannelKind } from '../contracts/alert-kinds.ts'

export interface AlertTables {
  alert_channel: AlertChannelTable
  alert_rule: AlertRuleTable
  alert_rule_channel: AlertRuleChannelTable
  alert_event: AlertEventTable
  alert: AlertTable
  alert_witness: AlertWitnessTable
  alert_message: AlertMessageTable
  alert_notice: AlertNoticeTable
}

export interface AlertChannelTable {
  id: Id
  name: string
  tenant_id: number | null
  kind: ChannelKind
  /** JSON array of e-mail addresses. */
  recipients: string | null
  /** The address of the sender of e-mail. */
  sender: string | null
  /** Null: the mail server of the installation. */
  smtp_host: string | null
  smtp_port: number | null
  smtp_tls: 'starttls' | 'tls' | 'none' | null
  smtp_user: string | null
  url: string | null
  /** Encrypted (`schema/secrets`). */
  secret: string | null
  is_enabled: Flag
  created_at: number
  updated_at: number
}

export interface AlertRuleTable {
  id: Id
  name: string
  /** Null: it sees what happens to all tenants. */
  tenant_id: number | null
  kind: AlertRuleKind
  severity: AlertSeverity
  threshold: number | null
  window_seconds: number
  least_calls: number
  for_seconds: number
  customer_id: number | null
  carrier_id: number | null
  /** The destination of a node. */
  node: string | null
  least_severity: 'medium' | 'high' | 'critical' | null
  group_seconds: number
  /** JSON of `QuietHours`. */
  quiet_hours: string | null
  is_enabled: Flag
  created_at: number
  updated_at: number
}

interface AlertRuleChannelTable {
  rule_id: number
  channel_id: number
}

export interface AlertEventTable {
  id: Id
  type: string
  tenant_id: number | null
  /** JSON. */
  data: string
  at: number
  /** The instance that has seen it; null: an earlier version wrote it. */
  instance: string | null
}

export interface AlertTable {
  id: Id
  /** The same in every message about it. */
  key: string
  rule_id: number
  /** The name of the rule when it opened. */
  rule: string
  tenant_id: number | null
  kind: AlertRuleKind
  /** Names what it is about among the alerts of its rule. */
  subject: string
  severity: AlertSeverity
  /** `waiting`: it has not lasted long enough yet. */
  state: 'waiting' | 'open' | 'closed'
  text: string
  /** JSON object. */
  figures: string
  /** A page of the console: `/console/carriers/3`. */
  path: string
  /** How many events or looks have said the same. */
  events: number
  began_at: number
  /** When it opens while it waits. */
  due_at: number
  opened_at: number | null
  closed_at: number | null
  /** Null: it is open. */
  closed_by: 'recovery' | 'rule' | 'removal' | 'itself' | null
  /** A sentence without a full stop: why it is over, where that is not plain. */
  ended: string | null
}

/** An instance that sees what the alert tells of. */
interface AlertWitnessTable {
  alert_id: number
  instance: string
}

export interface AlertMessageTable {
  id: Id
  /** The id by which receivers know it again. */
  key: string
  channel_id: number
  /** Null: it is a test. */
  rule_id: number | null
  /** It waits for the end of this message, which is about the same alert. */
  after_id: number | null
  /** JSON of `AlertMessage`. */
  body: string
  state: Defaulted<'pending' | 'sent' | 'failed'>
  attempts: Defaulted<number>
  next_attempt_at: number
  last_attempt_at: number | null
  last_error: string | null
  created_at: number
  /** The instance that sends it until `claimed_until`; null: none. */
  claimed_by: string | null
  claimed_until: number | null
}

export interface AlertNoticeTable {
  id: Id
  alert_id: number
  channel_id: number
  rule_id: number
  kind: 'opened' | 'recovered'
  at: number
  due_at: number
  /** Null: its group is not complete. */
  message_id: number | null
}
